// The editor of the session page.
