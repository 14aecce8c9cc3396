package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/oribi-db/oribi/compaction"
)

// ErrLine is the error of a malformed line of a layout or an event log.
var ErrLine = errors.New("bad line")

const maxLine = 1 << 20 // bytes of a line of a layout

// ReadLayout reads a layout from text: one rowset per line, with its size in units of 2^20 bytes,
// its first key and its last key, separated by tabs. Empty lines and lines that begin with # are
// skipped. The rowsets are ordered by first key and numbered by line. An error names the line and
// matches ErrLine unless reading failed.
func ReadLayout(in io.Reader, name string) (compaction.Layout, error) {
	l := compaction.Layout{Table: name}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number, total := 0, int64(0)
	for lines.Scan() {
		number++
		line := bytes.TrimSuffix(lines.Bytes(), []byte{'\r'})
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		set, err := layoutLine(line)
		if err == nil {
			if total += set.Bytes; total < 0 {
				err = errors.New("the sizes add up to more than 2^63 bytes")
			}
		}
		if err != nil {
			return l, &lineError{name, number, err}
		}
		set.ID = uint64(len(l.RowSets) + 1)
		l.RowSets = append(l.RowSets, set)
	}
	if err := lines.Err(); err != nil {
		if !errors.Is(err, bufio.ErrTooLong) {
			return l, fmt.Errorf("%s: after line %d: %w", name, number, err)
		}
		return l, &lineError{name, number + 1, err}
	}
	slices.SortStableFunc(l.RowSets, func(a, b compaction.RowSetInfo) int { return bytes.Compare(a.MinKey, b.MinKey) })
	return l, nil
}

// lineError is a malformed line.
type lineError struct {
	file string
	line int
	err  error
}

func (e *lineError) Error() string   { return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err) }
func (e *lineError) Unwrap() []error { return []error{e.err, ErrLine} }

func layoutLine(line []byte) (set compaction.RowSetInfo, err error) {
	fields := bytes.Split(line, []byte{'\t'})
	if len(fields) != 3 {
		return set, fmt.Errorf("%d fields, want size, first key, last key, separated by tabs", len(fields))
	}
	size, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil || size < 0 || size > math.MaxInt64>>20 {
		return set, fmt.Errorf("%.40q: want a size: an integer from 0 on, in MB", fields[0])
	}
	set.Bytes = size << 20
	set.MinKey, set.MaxKey = bytes.Clone(fields[1]), bytes.Clone(fields[2])
	if cmp.Compare(string(set.MinKey), string(set.MaxKey)) > 0 {
		return set, fmt.Errorf("the first key, %.40q, is above the last one, %.40q", set.MinKey, set.MaxKey)
	}
	return set, nil
}

// Scored is the pick of a policy from a layout, with its score.
type Scored struct {
	Choice  compaction.Choice
	Bytes   int64         // of the chosen rowsets
	Elapsed time.Duration // of the choice
}

// Score asks a policy for its choice of a layout. Nothing is chosen if the choice has no rowsets.
func Score(l compaction.Layout, p compaction.Policy, budget int64) (Scored, error) {
	began := time.Now()
	s := Scored{Choice: p.Pick(l, budget)}
	s.Elapsed = time.Since(began)
	if len(s.Choice.RowSets) == 0 {
		s.Choice.Quality = 0
		return s, nil
	}
	if err := s.Choice.Check(l); err != nil {
		return s, err
	}
	s.Bytes = chosenBytes(l, s.Choice)
	return s, nil
}

// chosenBytes returns the bytes of the rowsets of a choice.
func chosenBytes(l compaction.Layout, c compaction.Choice) (n int64) {
	chosen := make(map[uint64]bool, len(c.RowSets))
	for _, id := range c.RowSets {
		chosen[id] = true
	}
	for i := range l.RowSets {
		if chosen[l.RowSets[i].ID] {
			n += l.RowSets[i].Bytes
		}
	}
	return n
}
