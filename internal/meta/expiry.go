package meta

import (
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

func expiryMessages(rules expiry.Rules) (out []*kudupb.ExpiryRow) {
	for _, e := range rules {
		out = append(out, &kudupb.ExpiryRow{From: uint64(e.From), None: e.None, Column: int32(e.Column),
			Age: e.Age, Stopped: uint64(e.Stopped)})
	}
	return out
}

// expiryRules returns the rules in messages of a table with the schema s. Errors: ErrCorrupt.
func expiryRules(s *schema.Schema, messages []*kudupb.ExpiryRow) (rules expiry.Rules, err error) {
	for _, m := range messages {
		e := expiry.Entry{From: mvcc.Timestamp(m.From), None: m.None}
		if n := len(rules); n > 0 && e.From <= rules[n-1].From {
			return nil, fault.Corruptf("expiry from %v after %v", e.From, rules[n-1].From)
		}
		if !m.None {
			e.Rule = expiry.Rule{Column: schema.ColumnID(m.Column), Age: m.Age}
			e.Stopped = mvcc.Timestamp(m.Stopped)
			if i := s.IndexID(e.Column); i < 0 || s.Columns[i].Type != schema.Timestamp {
				return nil, fault.Corruptf("expiry: no timestamp column has id %d", m.Column)
			}
			if e.Age < 0 || e.Stopped > e.From {
				return nil, fault.Corruptf("expiry from %v: age of %d µs, stopped at %v", e.From, e.Age, e.Stopped)
			}
		}
		rules = append(rules, e)
	}
	return rules, nil
}
