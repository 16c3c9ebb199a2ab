package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"cellblock/sessions"
)

// Running implements sessions.Store. It is asked at the start and by every sweep.
func (s *Store) Running(ctx context.Context) ([]sessions.StoredKernel, error) {
	return collect(ctx, s.read, func(row scanner) (k sessions.StoredKernel, err error) {
		var ref, holder string
		var seq int64
		var created, used, started sql.NullInt64
		p, g := &k.Session, &k.Generation
		err = row.Scan(&p.Ref, &p.Owner.Issuer, &p.Owner.Subject, &p.ID, &p.Workspace, &p.Language, &p.Profile, &p.Image, &created, &used, &holder,
			&p.Generations, &p.Executions, &p.Bytes, &ref, &seq, &started)
		if err != nil {
			return k, err
		}
		p.Created, p.Used, p.Held = at(created), at(used), s.held(holder)
		g.Number, g.Seq, g.Started = p.Generations, uint64(seq), at(started)
		return k, json.Unmarshal([]byte(ref), &g.Ref)
	}, `SELECT s.id, s.issuer, s.subject, s.name, s.workspace, s.language, s.profile, s.image, s.created, s.used, s.holder,
		s.generations, s.executions, s.bytes, g.ref, g.seq, g.started
		FROM sessions s JOIN generations g ON g.session = s.id AND g.number = s.generations
		WHERE s.closed IS NULL AND s.deleted = 0 AND g.ended IS NULL`)
}

// Images implements sessions.Store.
func (s *Store) Images(ctx context.Context) (map[string]time.Time, error) {
	type use struct {
		image string
		at    time.Time
	}
	list, err := collect(ctx, s.read, func(row scanner) (u use, err error) {
		var used sql.NullInt64
		err = row.Scan(&u.image, &used)
		u.at = at(used)
		return u, err
	}, `SELECT image, MAX(used) FROM sessions WHERE closed IS NULL AND deleted = 0 AND image <> '' GROUP BY image`)
	all := make(map[string]time.Time, len(list))
	for _, u := range list {
		all[u.image] = u.at
	}
	return all, err
}
