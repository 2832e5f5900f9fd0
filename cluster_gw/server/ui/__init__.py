"""The dashboard: static files on the operations port; what they show they ask of the admin API."""
