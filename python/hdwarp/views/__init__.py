"""views: cameras x worlds -> view rows: lenses, aperture conforming, data windows. Knows no USD."""
