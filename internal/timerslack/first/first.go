// Package first widens the timer slack (timerslack.Widen) of programs that import it for that alone, before anything else is
// initialised: the program is executed again, and what has been done until then is done twice. Go initialises packages in the
// order of their paths, each as soon as all that it imports is ready. So this one must import nothing but what package os needs.
package first

import (
	"os"

	"cellblock/internal/timerslack"
)

// init does it for what runs for long: the shim, which has no arguments, and the server. What ends soon has no use for it.
func init() {
	if len(os.Args) == 1 {
		timerslack.Widen()
		return
	}
	for _, arg := range os.Args {
		if arg == "serve" || arg == "stdio" {
			timerslack.Widen()
			return
		}
	}
}
