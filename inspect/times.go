package inspect

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// timesView is the time that a page can show, with the changes of the rows on it.
type timesView struct {
	// the oldest state that can be read; without a limit, that before the oldest change of these
	// rows
	First    moment   `json:"first"`
	Last     moment   `json:"last"`     // the newest state
	Changes  []moment `json:"changes"`  // of these rows, newest first
	Complete bool     `json:"complete"` // these are all changes of these rows
	Earlier  *moment  `json:"earlier,omitempty"`
	Later    *moment  `json:"later,omitempty"` // changes next to the state

	EarlierURL string        `json:"-"`
	LaterURL   string        `json:"-"`
	Ticks      template.HTML `json:"-"` // a picture of the changes
	Limited    bool          `json:"-"` // First is where the history begins
	Position   int           `json:"-"` // of the state between First and Last, of sliderSteps
}

// Limits of the search for changes.
const (
	changesMost = 100 // that a page lists
	changesTime = 50 * time.Millisecond
	sliderSteps = 1000
)

// times returns the time that a page about some rows can show. sinceParam is the parameter with
// which the links to changes compare their state; it may be empty.
func (s *server) times(ctx context.Context, q *query, at state, keys [][][]byte, sinceParam string) timesView {
	changes, complete := changesOf(ctx, q.Table, keys)
	first, last := s.floor(q.Table), s.store.Visible()
	limited := first > 0
	if !limited {
		if first = mvcc.FromTime(last.Time().Add(-7 * 24 * time.Hour)); len(changes) > 0 {
			first = changes[len(changes)-1] - 1
		}
	}
	v := timesView{First: momentOf(first), Last: momentOf(last), Changes: []moment{}, Complete: complete,
		Limited: limited, Position: position(at.ts, first, last)}
	v.Ticks = ticks(changes, first, last, v.Position)
	to := func(ts mvcc.Timestamp) (*moment, string) {
		m := momentOf(ts)
		list := []string{"at", fmt.Sprint(uint64(ts))}
		if sinceParam != "" && ts-1 >= s.floor(q.Table) {
			list = append(list, sinceParam, fmt.Sprint(uint64(ts-1)))
		}
		return &m, s.address(q.page.pattern, q.With(list...))
	}
	for _, ts := range changes { // newest first
		switch {
		case ts > at.ts:
			v.Later, v.LaterURL = to(ts)
		case ts < at.ts && v.Earlier == nil && ts >= s.floor(q.Table):
			v.Earlier, v.EarlierURL = to(ts)
		}
	}
	for _, ts := range changes[:min(len(changes), changesMost)] {
		v.Changes = append(v.Changes, momentOf(ts))
	}
	v.Complete = complete && len(changes) <= changesMost
	return v
}

// changesOf returns the timestamps at which rows changed, newest first, and reports whether these
// are all of them.
func changesOf(ctx context.Context, t *oribi.Table, keys [][][]byte) (list []mvcc.Timestamp, complete bool) {
	ctx, cancel := context.WithTimeout(ctx, changesTime)
	defer cancel()
	complete = true
	for _, key := range keys {
		n := 0
		for v, err := range t.History(ctx, key) {
			if err != nil {
				complete = complete && errors.Is(err, oribi.ErrNotFound)
				break
			}
			if n++; n > changesMost {
				complete = false
				break
			}
			if v.Kind != oribi.Base {
				list = append(list, v.Timestamp)
			}
		}
		if ctx.Err() != nil {
			complete = false
			break
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	slices.Reverse(list)
	return list, complete
}

// position returns where a timestamp is between two others, of sliderSteps.
func position(ts, first, last mvcc.Timestamp) int {
	if last <= first || ts <= first {
		return 0
	}
	return int(sliderSteps * min(1, float64(ts-first)/float64(last-first)))
}

// ticks draws changes on the line of time.
func ticks(changes []mvcc.Timestamp, first, last mvcc.Timestamp, here int) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg class="ticks" viewBox="0 0 %d 16" preserveAspectRatio="none" aria-hidden="true"><rect class="axis" y="7" width="%[1]d" height="2"/>`, sliderSteps)
	drawn := -1
	for _, ts := range changes {
		if at := position(ts, first, last); at != drawn && ts >= first {
			fmt.Fprintf(&b, `<rect class="tick" x="%d" y="3" width="2" height="10"/>`, at-1)
			drawn = at
		}
	}
	fmt.Fprintf(&b, `<path class="here" d="M%d 0h8l-4 6z"/></svg>`, here-4)
	return template.HTML(b.String())
}
