package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oribi-db/oribi"
)

// retry commits rows without those that the store refuses; err is the error of the first attempt.
// It writes the refused rows and the malformed records to SkipBad, in the order of the input.
func (l *loader) retry(ctx context.Context, r *rows, err error) error {
	for err != nil {
		fault, ok := errors.AsType[*rowFault](err)
		if !ok {
			return err
		}
		refused := map[int]error{fault.row: fault.cause}
		if errors.Is(err, oribi.ErrKeyExists) {
			// Look up all keys: otherwise a file that is loaded twice would need a commit per row.
			if refused, err = l.duplicates(ctx, r); err != nil {
				return err
			}
			refused[fault.row] = fault.cause
		}
		for _, i := range slices.Sorted(maps.Keys(refused)) {
			r.bad = append(r.bad, badRecord{raw: r.rawOf(i), err: l.at(r.places[i].line, refused[i])})
		}
		r.keep(refused)
		err = l.insert(ctx, r)
	}
	slices.SortStableFunc(r.bad, func(a, b badRecord) int { return a.err.Line - b.err.Line })
	for _, bad := range r.bad {
		if _, err := l.o.SkipBad.Write(bad.raw); err != nil {
			return fmt.Errorf("bad records: %w", err)
		}
		if l.result.Skipped++; l.result.FirstBad == nil {
			l.result.FirstBad = bad.err
		}
	}
	return nil
}

// duplicates returns the rows whose key exists in the table or in an earlier row.
func (l *loader) duplicates(ctx context.Context, r *rows) (map[int]error, error) {
	s := l.o.Table.Schema()
	found := map[int]error{}
	seen := make(map[string]bool, r.len())
	key := make([][]byte, s.Keys)
	var text []byte
	for i := range r.len() {
		text = text[:0]
		for c := range key {
			key[c] = r.vectors[c].Cell(i)
			text = append(binary.AppendUvarint(text, uint64(len(key[c]))), key[c]...)
		}
		there := seen[string(text)]
		if !there {
			seen[string(text)] = true
			_, _, err := l.o.Table.GetCells(ctx, key, oribi.Columns(s.Columns[0].Name))
			if err != nil && !errors.Is(err, oribi.ErrNotFound) {
				return nil, err
			}
			there = err == nil
		}
		if there {
			found[i] = l.rowCause(&oribi.RowError{Cause: oribi.ErrKeyExists})
		}
	}
	return found, nil
}
