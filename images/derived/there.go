package derived

import (
	"context"
	"io"
	"slices"
	"time"

	"cellblock/images/packages"
)

// lookTime bounds how long managers may take to say what is there.
const lookTime = time.Minute

// has tells whether an image, which has some packages more than a base, brings all that is wanted, in the versions that are wanted.
// Its managers say so, in a container without a network: what they cannot tell is not there.
func (l *Library) has(ctx context.Context, image string, base Base, more, wanted packages.Set) bool {
	if len(wanted) == 0 {
		return false // which is refused
	}
	if !slices.ContainsFunc(wanted, func(p packages.Package) bool { return !slices.Contains(more, p) }) {
		return true
	}
	steps, ok := looks(wanted, base)
	if !ok {
		return false
	}
	done, err := l.turn(ctx, io.Discard)
	if err != nil {
		return false
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return l.cfg.Engine.Build(ctx, Build{Base: image, Network: "none", Memory: l.cfg.Memory, Limit: l.cfg.Limit, Steps: steps}, io.Discard) == nil
}

// looks are programs that all succeed where packages are installed, and install none themselves: nothing can be fetched. It is not
// ok where a manager has no such program.
func looks(wanted packages.Set, base Base) (steps []Step, ok bool) {
	env := Sources{}.env()
	for _, m := range packages.Managers() {
		names := wanted.Of(m)
		switch {
		case len(names) == 0:
		case m == packages.Apt:
			argv := []string{"apt-get", "-q", "install", "-y", "--no-download", "--no-install-recommends", "--"}
			steps = append(steps, Step{Manager: m, Env: append(env, "DEBIAN_FRONTEND=noninteractive"), Argv: append(argv, names...)})
		case m == packages.Pip && base.Python != "":
			own := []string{"PIP_CONFIG_FILE=/dev/null", "PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_BREAK_SYSTEM_PACKAGES=1"}
			steps = append(steps, Step{Manager: m, Env: append(own, env...), Argv: append([]string{base.Python, "-m", "pip", "install", "--no-index", "--"}, names...)})
		case m == packages.Npm:
			for _, name := range names {
				steps = append(steps, Step{Manager: m, Env: env, Argv: []string{"npm", "ls", "--global", "--prefix", npmPrefix, "--depth", "0", "--", name}})
			}
		default:
			return nil, false
		}
	}
	return steps, true
}
