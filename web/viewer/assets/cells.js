// The cells of the session page.
