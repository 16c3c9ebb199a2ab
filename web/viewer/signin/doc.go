// Package signin keeps who is signed in with a browser: a secret in a cookie stands for a token that never leaves the server.
//
// Each sign-in is a file in one folder, 0600, named after a digest of its secret and sealed with a key that is made of the
// secret, so that neither the folder alone nor a list of its files gives anybody a token. Files outlive the server, and
// all processes that use the data folder see the same. A sign-in ends with its token, when its person signs out, or when
// the file is removed.
//
// A code is a way in for whoever may read and write the data folder: a file of the same form, of which the code is the secret,
// good once and for a few minutes. The address with it may stand in a terminal's scrollback afterwards without harm.
package signin
