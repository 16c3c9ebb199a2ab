package conformance

// Why a check fails. None of it is a defect that we know of and leave.
const (
	noLogging = "logging is deprecated by 2026-07-28, and the server has nothing to say by it: it does not declare the " +
		"capability, so logging/setLevel is answered as unknown"
	noCapabilityNeeded = "no tool of ours needs a client's capability: one that could use it does without, so that the error " +
		"for a missing one never arises (and mcp-go gives a handler no way to return it)"
)

// expected is every check of the suite that we do not pass, and why.
var expected = []struct{ revision, scenario, check, reason string }{
	{"2025-11-25", "logging-set-level", "logging-set-level", noLogging},
	{"2025-11-25", "tools-call-with-logging", "tools-call-with-logging", noLogging},
	{"2026-07-28", "server-stateless", "sep-2575-server-rejects-undeclared-capability", noCapabilityNeeded},
	{"2026-07-28", "server-stateless", "sep-2575-missing-capability-http-400", noCapabilityNeeded},
}

// expectation returns why a check may fail, "" if it may not.
func expectation(revision, scenario, check string) string {
	for _, e := range expected {
		if e.revision == revision && e.scenario == scenario && e.check == check {
			return e.reason
		}
	}
	return ""
}
