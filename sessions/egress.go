package sessions

import (
	"cellblock/egress"
)

// compileRules makes of each profile's network policy what decides about connections.
func compileRules(profiles map[string]Profile) (map[string]*egress.Rules, error) {
	rules := map[string]*egress.Rules{}
	for name, p := range profiles {
		var err error
		if rules[name], err = p.Network.Compile(); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// leadOut has what the session's kernel connects to decided by the policy that its profile has now, whatever that was when the
// kernel was launched.
func (s *session) leadOut(c client) {
	m := s.manager
	if m.cfg.Gateway == nil {
		return
	}
	who := egress.Who{Issuer: s.key.owner.Issuer, Subject: s.key.owner.Subject, Session: s.key.id, Profile: s.choice.Profile}
	c.ServeEgress(m.cfg.Gateway.Door(who, m.rules[s.choice.Profile]).Serve)
}
