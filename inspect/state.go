package inspect

import (
	"context"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
)

// state is a state of the store that a page reads: several reads of it see the same.
type state struct {
	ts      mvcc.Timestamp
	option  oribi.ReadOption
	release func()
}

// stateAt returns the state at a timestamp, which may be when.Latest. The caller releases it.
func (s *server) stateAt(ctx context.Context, ts mvcc.Timestamp) (state, error) {
	if ts != when.Latest {
		return state{ts, oribi.AsOf(ts), func() {}}, nil
	}
	sn, err := s.store.Snapshot(ctx)
	if err != nil {
		return state{}, err
	}
	sn.SetName("inspect")
	return state{sn.Timestamp(), oribi.At(sn), func() { sn.Close() }}, nil
}

// otherState returns the state of a parameter that is a point in time; nil without it. The caller
// releases it.
func (s *server) otherState(ctx context.Context, q *query, name string) (*state, error) {
	word := q.Text(name)
	if word == "" {
		return nil, nil
	}
	ts, err := when.ParseState(word, s.now())
	if err != nil {
		return nil, badRequest("%s: %v.", name, err)
	}
	st, err := s.stateAt(ctx, ts)
	if err != nil {
		return nil, err
	}
	return &st, nil
}

// floor returns the oldest timestamp at which a table can be read, 0 if there is no limit.
func (s *server) floor(t *oribi.Table) mvcc.Timestamp {
	p := t.Properties()
	floor := p.HistoryFloor
	if p.History != oribi.HistoryForever {
		floor = max(floor, mvcc.FromTime(s.now().Add(-p.History)))
	}
	return floor
}

// shortcut is a link to a state of the past.
type shortcut struct {
	Name, URL string
	Current   bool
}

// ages are the states that pages offer.
var ages = []struct {
	name, word string
	age        time.Duration
}{{"now", "", 0}, {"1 hour ago", "-1h", time.Hour}, {"yesterday", "-1d",
	24 * time.Hour}, {"7 days ago", "-7d", 7 * 24 * time.Hour}}

// floorMargin is how long before the history begins a state is no longer offered, since the
// beginning moves with the present and a link is followed later.
const floorMargin = 10 * time.Minute

// shortcuts returns links to the page with a parameter set to points in time of the table's
// history.
func (s *server) shortcuts(q *query, param string) (list []shortcut) {
	floor := s.floor(q.Table)
	for _, a := range ages {
		if a.age > 0 && mvcc.FromTime(s.now().Add(-a.age-floorMargin)) <= floor {
			continue
		}
		list = append(list, shortcut{a.name, s.address(q.page.pattern, q.With(param, a.word)), q.Text(param) == a.word})
	}
	return list
}
