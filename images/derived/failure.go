package derived

import (
	"errors"
	"strings"

	"cellblock/images/packages"
	"cellblock/internal/fault"
)

// lastLines keeps the end of what a build printed.
type lastLines struct{ text []byte }

// keptOfLog is how much, in bytes; shownOfLog is how many lines of it an error shows.
const keptOfLog, shownOfLog = 16 << 10, 8

// Write never fails.
func (l *lastLines) Write(p []byte) (int, error) {
	l.text = append(l.text, p[max(0, len(p)-keptOfLog):]...)
	if len(l.text) > 2*keptOfLog {
		l.text = append(l.text[:0], l.text[len(l.text)-keptOfLog:]...)
	}
	return len(p), nil
}

// said returns the lines in which a manager says what went wrong, the last ones; where it does not mark them, the last of all.
func (l *lastLines) said(m packages.Manager) string {
	marks := map[packages.Manager][]string{
		packages.Apt: {"E: ", "Err:"}, packages.Npm: {"npm error ", "npm ERR! "},
		// What cannot be fetched, pip says in passing; its errors are then that there is no such package.
		packages.Pip: {"ERROR: ", "error: ", "WARNING: Retrying (Retry(total=0,", "Could not fetch URL "},
	}[m]
	var all, marked []string
	for _, line := range strings.Split(strings.ToValidUTF8(string(l.text), "?"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.Contains(line, "complete log of this run") {
			continue
		}
		all = append(all, line)
		for _, mark := range marks {
			if strings.HasPrefix(line, mark) {
				marked = append(marked, line)
			}
		}
	}
	if len(marked) > 0 {
		all = marked
	}
	return strings.Join(all[max(0, len(all)-shownOfLog):], "\n")
}

// reasons are what managers say, what kind of error it is, and what can be done about it.
var reasons = []struct {
	said []string
	kind fault.Kind
	hint string
}{
	{[]string{"No space left on device", "ENOSPC"}, fault.Unavailable, "the engine's disk is full: the operator must make room; images that you do not need go by delete_image, once the sessions in them are closed (close_session)"},
	{[]string{"CERTIFICATE_VERIFY_FAILED", "ertificate verif", "CERT_", "ISSUER_CERT", "UNABLE_TO_VERIFY_LEAF", "server verification failed"}, fault.Unavailable,
		"the certificate of the packages' index, or of a proxy before it, is not trusted; the operator can name who signed it (images_build.ca_file)"},
	{[]string{"after connection broken by", "Temporary failure resolving", "Temporary failure in name resolution", "Name or service not known", "EAI_AGAIN", "ENOTFOUND", "Connection refused",
		"ECONNREFUSED", "Could not connect", "Network is unreachable", "timed out", "ETIMEDOUT"}, fault.Unavailable,
		"the server cannot reach the packages' index; the operator can name another one (images_build), or try again later"},
	{[]string{"No module named pip"}, fault.Invalid, `the image has no pip; "apt:python3-pip" in the same request installs it first`},
	{[]string{"No matching distribution", "Could not find a version"}, fault.Invalid,
		"check name and version. Only ready-made wheels for this Python are installed, nothing is built from sources"},
	{[]string{"Unable to locate package", "has no installation candidate", "Version '", "E404", "ETARGET", "404 Not Found", "Unable to find"}, fault.Invalid, "check the name and the version"},
	{[]string{"ResolutionImpossible", "unmet dependencies", "ERESOLVE", "conflicting dependencies"}, fault.Invalid, "these packages do not go together: leave out one, or its version"},
}

// explain makes of a failed build's error one that says what its manager said, and what can be done.
func explain(err error, log *lastLines, base Base) error {
	step, ok := errors.AsType[*StepError](err)
	if !ok {
		return err
	}
	m := step.Step.Manager
	said := log.said(m)
	if step.ExitCode == 126 || step.ExitCode == 127 {
		return fault.New(fault.Invalid, "the image %s has no %s: nothing was installed", base.Image, m).
			WithHint("%s", missing(m))
	}
	f := fault.New(fault.Invalid, "%s failed, nothing was installed:\n%s", m, said)
	f.Err = err
	for _, r := range reasons {
		for _, text := range r.said {
			if strings.Contains(said, text) {
				f.Kind = r.kind
				return f.WithHint("%s", r.hint)
			}
		}
	}
	if step.ExitCode == 137 {
		return f.WithHint("it was killed, most likely because it ran out of memory: ask for fewer packages at once")
	}
	return f.WithHint("mend the list of packages, and try again")
}

func missing(m packages.Manager) string {
	switch m {
	case packages.Npm:
		return `"apt:npm" in the same request installs it first`
	case packages.Pip:
		return `"apt:python3-pip" in the same request installs it first`
	}
	return "use an image that has it, or leave its packages out"
}
