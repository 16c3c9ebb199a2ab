// The side panel of the session page.
