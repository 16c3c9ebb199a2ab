package derived

import (
	"net/url"
	"slices"
	"strings"

	"cellblock/images"
	"cellblock/images/packages"
	"cellblock/internal/fault"
)

// Scratch is the folder of a build's container of which nothing gets into the image.
const Scratch = "/cellblock-build"

// recipeVersion is part of every derived image's name: what is installed in another way is another image.
const recipeVersion = "1"

// caName is the file of Sources.Authorities in Scratch.
const caName = "authorities.pem"

// Where packages of npm and NuGet are put.
const (
	npmPrefix   = "/usr/local"
	npmModules  = npmPrefix + "/lib/node_modules"
	nugetFolder = "/usr/local/lib/nuget"
)

// Sources says where packages come from, and what of them is run.
type Sources struct {
	// PipIndex, NpmRegistry and NugetSource are addresses of other indexes than the managers' own; empty: those.
	PipIndex, NpmRegistry, NugetSource string
	// Proxy is that of builds, NoProxy the hosts that are reached without it.
	Proxy, NoProxy string
	// Authorities are certificates (PEM) that builds trust besides the image's own.
	Authorities []byte
	// Network is the engine's network that builds have; empty: its bridge.
	Network string
	// Scripts lets packages run programs of their own as they are installed: pip builds from sources, npm runs install scripts.
	// Without it, only Debian's packages do.
	Scripts bool
}

// Check refuses addresses that are none.
func (s Sources) Check() error {
	for key, address := range map[string]string{"pip_index_url": s.PipIndex, "npm_registry": s.NpmRegistry, "nuget_source": s.NugetSource, "proxy": s.Proxy} {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return fault.New(fault.Invalid, "configuration: images_build.%s is no address", key).WithHint("Write it as https://host/path.")
		}
	}
	return nil
}

// kind is what of the sources makes another image of the same packages.
func (s Sources) kind() string { return s.PipIndex + " " + s.NpmRegistry + " " + s.NugetSource }

// recipe says how packages get into an image.
func (l *Library) recipe(base Base, set packages.Set) (Build, error) {
	s := l.cfg.Sources
	b := Build{
		Base: base.Image, Network: s.Network, Memory: l.cfg.Memory, Size: l.cfg.Size, Reserve: l.cfg.Reserve, Limit: l.cfg.Limit,
		Labels: map[string]string{
			images.Label: strings.Join(base.Languages, ","), Label: l.cfg.Installation, labelBase: base.Image, labelPackages: strings.Join(set.Strings(), ";"),
		},
	}
	if len(s.Authorities) > 0 {
		b.Files = map[string][]byte{caName: s.Authorities}
	}
	for _, m := range packages.Managers() {
		wanted := set.Of(m)
		if len(wanted) == 0 {
			continue
		}
		steps, err := s.steps(m, wanted, base)
		if err != nil {
			return b, err
		}
		for _, step := range steps {
			step.Manager, step.Env = m, append(step.Env, s.env()...)
			b.Steps = append(b.Steps, step)
		}
		if m == packages.Npm {
			b.Env = append(b.Env, "NODE_PATH="+npmModules)
		}
	}
	return b, nil
}

// env is what all steps have.
func (s Sources) env() []string {
	env := []string{"HOME=" + Scratch, "TMPDIR=" + Scratch, "LC_ALL=C.UTF-8"}
	if s.Proxy != "" {
		for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
			env = append(env, name+"="+s.Proxy)
		}
	}
	if s.NoProxy != "" {
		env = append(env, "no_proxy="+s.NoProxy, "NO_PROXY="+s.NoProxy)
	}
	return env
}

func (s Sources) steps(m packages.Manager, wanted []string, base Base) ([]Step, error) {
	switch m {
	case packages.Apt:
		return s.apt(wanted), nil
	case packages.Pip:
		if base.Python == "" {
			return nil, fault.New(fault.Invalid, "packages: the image %s has no Python kernel that could use packages of pip", base.Image).
				WithHint("leave them out, or use an image with Python")
		}
		return []Step{s.pip(wanted, base.Python)}, nil
	case packages.Npm:
		return []Step{s.npm(wanted)}, nil
	}
	return s.nuget(wanted), nil
}

// apt installs packages of Debian. What it fetched is removed: the image would never use it.
func (s Sources) apt(wanted []string) []Step {
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	options := []string{"-q"}
	if len(s.Authorities) > 0 {
		options = append(options, "-o", "Acquire::https::CAInfo="+Scratch+"/"+caName)
	}
	run := func(words ...string) Step {
		return Step{Argv: slices.Concat([]string{"apt-get"}, options, words), Env: env}
	}
	return []Step{
		run("update"),
		run(append([]string{"install", "-y", "--no-install-recommends", "--"}, wanted...)...),
		run("clean"),
		{Argv: []string{"find", "/var/lib/apt/lists", "-mindepth", "1", "-delete"}},
	}
}

// pip installs packages of Python's index, beside Debian's. Its options are variables: those that an older one does not know do
// no harm.
func (s Sources) pip(wanted []string, python string) Step {
	env := []string{
		"PIP_NO_INPUT=1", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
		"PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_PROGRESS_BAR=off", "PIP_NO_WARN_SCRIPT_LOCATION=1",
	}
	if !s.Scripts {
		env = append(env, "PIP_ONLY_BINARY=:all:")
	}
	if s.PipIndex != "" {
		env = append(env, "PIP_INDEX_URL="+s.PipIndex)
		if u, err := url.Parse(s.PipIndex); err == nil && u.Scheme == "http" { // the operator has said so
			env = append(env, "PIP_TRUSTED_HOST="+u.Hostname())
		}
	}
	if len(s.Authorities) > 0 {
		env = append(env, "PIP_CERT="+Scratch+"/"+caName)
	}
	return Step{Argv: append([]string{python, "-m", "pip", "install", "--"}, wanted...), Env: env}
}

// npm installs packages where NODE_PATH finds them, whatever folder of modules the image has.
func (s Sources) npm(wanted []string) Step {
	argv := []string{"npm", "install", "--global", "--prefix", npmPrefix, "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress"}
	env := []string{"npm_config_cache=" + Scratch + "/npm", "npm_config_fetch_retry_mintimeout=1000", "npm_config_fetch_retry_maxtimeout=5000"}
	if !s.Scripts {
		argv = append(argv, "--ignore-scripts")
	}
	if s.NpmRegistry != "" {
		env = append(env, "npm_config_registry="+s.NpmRegistry)
	}
	if len(s.Authorities) > 0 {
		env = append(env, "NODE_EXTRA_CA_CERTS="+Scratch+"/"+caName)
	}
	return Step{Argv: append(append(argv, "--"), wanted...), Env: env}
}

// nuget puts packages of NuGet into a folder, one after another: its client takes one at a time.
func (s Sources) nuget(wanted []string) (steps []Step) {
	for _, p := range wanted {
		id, version, versioned := strings.Cut(p, "@")
		argv := []string{"nuget", "install", id, "-OutputDirectory", nugetFolder, "-NonInteractive"}
		if versioned {
			argv = append(argv, "-Version", version)
		}
		if s.NugetSource != "" {
			argv = append(argv, "-Source", s.NugetSource)
		}
		steps = append(steps, Step{Argv: argv})
	}
	return steps
}
