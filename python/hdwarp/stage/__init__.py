"""stage: USD in, NumPy columns out. The only package below the delegate that imports pxr; no Warp here."""
