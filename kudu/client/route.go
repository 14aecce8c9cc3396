package client

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurow"
)

// load makes a lane for each tablet. No lane has rows.
func (s *Session) load(known *tablets) {
	s.known, s.routes, s.last = known, make(map[*tablet]*lane, len(known.all)), nil
	for _, t := range known.all {
		s.routes[t] = &lane{tablet: t}
	}
}

// find returns the lane of rows with a partition key, nil if no tablet has it.
func (s *Session) find(key []byte) *lane { return s.routes[s.known.find(key)] }

// route returns the lane of a row. Errors: ErrNotCovered.
func (s *Session) route(ctx context.Context, key []byte) (*lane, error) {
	if s.last != nil && s.last.tablet.has(key) {
		return s.last, nil
	}
	l := s.find(key)
	if l == nil {
		var err error
		if l, err = s.routeAgain(ctx, key, nil); err != nil {
			return nil, err
		}
	}
	s.last = l
	return l, nil
}

// routeAgain asks the master for the tablet of a row that no known one has: a range may be new. All
// rows are written first, so that later ones cannot overtake them on the way to another tablet.
func (s *Session) routeAgain(ctx context.Context, key []byte, touched []*lane) (*lane, error) {
	for _, l := range touched {
		l.chosen = l.chosen[:0]
	}
	if err := s.drain(ctx); err != nil {
		return nil, err
	}
	known, err := s.t.refresh(ctx, s.known)
	if err != nil {
		return nil, err
	}
	s.load(known)
	if l := s.find(key); l != nil {
		return l, nil
	}
	return nil, s.t.wrap(ErrNotCovered)
}

// choose sets which rows of b belong to which lane, and returns the lanes.
func (s *Session) choose(
	ctx context.Context, source *kudurow.Source, b *batch.RecordBatch,
) (touched []*lane, err error) {
	s.keys = s.parts.AppendKeys(s.keys[:0], source.Keys(), b.Len)
	defer func() {
		clear(s.keys)
		if err != nil {
			for _, l := range touched {
				l.chosen = l.chosen[:0]
			}
		}
	}()
	for row := range b.Rows() {
		l := s.last
		if l == nil || !l.tablet.has(s.keys[row]) {
			if l = s.find(s.keys[row]); l == nil {
				if l, err = s.routeAgain(ctx, s.keys[row], touched); err != nil {
					cells := make([][]byte, s.schema.Keys)
					source.Cells(cells, row)
					return touched, fmt.Errorf("row %d, with the key %s: %w", row, s.keyText(cells), err)
				}
				if touched = nil; l != nil { // the lanes are new ones
					return s.choose(ctx, source, b)
				}
			}
			s.last = l
		}
		if len(l.chosen) == 0 {
			touched = append(touched, l)
		}
		l.chosen = append(l.chosen, int32(row))
	}
	return touched, nil
}
