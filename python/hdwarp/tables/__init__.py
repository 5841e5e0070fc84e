"""tables: the render index's rows as device columns, and the trees over them. Knows no USD."""
