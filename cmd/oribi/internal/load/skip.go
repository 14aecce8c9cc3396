package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
		r.skip(l, refused)
		r.keep(refused)
		if refused, err = l.insert(ctx, r, true); err == nil {
			r.skip(l, refused)
		}
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

// skip adds the records of refused rows to r.bad.
func (r *rows) skip(l *loader, refused map[int]error) {
	for _, i := range slices.Sorted(maps.Keys(refused)) {
		r.bad = append(r.bad, badRecord{raw: r.rawOf(i), err: l.at(r.places[i].line, refused[i])})
	}
}
