package mcpserver

import (
	"cmp"
	"regexp"

	"cellblock/images/packages"
)

// noInstall is what pip and R, and noRoot what apt and dpkg print where they can install nothing.
var (
	noInstall = []string{"No matching distribution found for ", "error: externally-managed-environment", "No module named pip",
		"is not available for this version of R"}
	noRoot = []string{"/var/lib/dpkg/lock", "/var/lib/apt/lists/", "/var/cache/apt/", "dpkg: error: requested operation requires superuser privilege"}
)

// missingProgram is what bash, and a system's plain shell, say of a program that they cannot find.
var missingProgram = regexp.MustCompile(`(?m)^(?:\[stderr\] )?\S+: (?:(?:line \d+: )?(` + program + `): command not found|\d+: (` + program + `): not found)\r?$`)

const program = `[A-Za-z0-9][\w.+-]{0,62}`

// imageHint says how packages get into a kernel's image.
func (n network) imageHint() string {
	switch {
	case n.images:
		return "install_package gets further ones into the session's image."
	case n.host:
		return "Other packages are installed on the server's host, by its operator."
	}
	return "Other packages come with the kernels' image, which is the operator's."
}

// notInstalled is the hint for a text that tells of something that is not installed, or could not be. It is empty for any
// other text.
func (b bounds) notInstalled(text string) string {
	if said := missingProgram.FindStringSubmatch(text); said != nil {
		return b.programHint(cmp.Or(said[1], said[2]))
	}
	switch {
	case containsAny(text, noInstall):
		return b.installHint()
	case containsAny(text, noRoot):
		return "The kernel's system cannot be changed from inside. " + b.network.systemHint("jq")
	}
	return ""
}

// programHint is for a program that is not there.
func (b bounds) programHint(name string) string {
	switch name {
	case "sudo", "apt", "apt-get", "dpkg", "yum", "dnf", "apk", "brew":
		return "The kernel's system cannot be changed from inside, as code never runs as root. " + b.network.systemHint("jq")
	case "python":
		if b.manager == packages.Pip {
			return "It is called python3 here."
		}
	case "pip", "pip3":
		if b.manager == packages.Pip {
			return b.installHint()
		}
		fallthrough
	case "npm", "npx", "conda", "gem", "cargo":
		if b.network.mode == "" {
			return name + " is not installed, and could fetch nothing, as the kernel has no network. " + b.network.systemHint("jq")
		}
	}
	return name + " is not installed. " + b.network.systemHint(name)
}

// systemHint says how a program gets where kernels run; example is the one that is asked for, or any.
func (n network) systemHint(example string) string {
	switch {
	case n.images:
		return "install_package gets Debian's packages into the session's image: \"apt:" + example + "\", or whatever the package is called that has the program."
	case n.host:
		return "Programs are installed on the server's host, by its operator."
	}
	return "Programs come with the kernels' image, which is the operator's."
}

// installHint is for pip, or a like of it, that could install nothing.
func (b bounds) installHint() string {
	if b.network.mode != "" {
		return ""
	}
	there := "what is there"
	if b.manager == packages.Pip {
		there += " (importlib.metadata.distributions() lists it), or put a pure Python module into the workspace"
	}
	return "Nothing can be installed, as the kernel has no network: use " + there + ". " + b.network.imageHint() + b.network.alternative()
}
