package oribi

import (
	"context"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/scaninfo"
)

// Count returns the number of rows. Without options, it adds up counters and reads no rows, unless
// rows of the table expire, or write batches are in flight that it must not count yet.
func (t *Table) Count(ctx context.Context, opts ...CountOption) (int64, error) {
	o := collect(opts)
	return t.count(ctx, &o)
}

// count is Count. It changes o.
func (t *Table) count(ctx context.Context, o *readOptions) (int64, error) {
	begin := time.Now()
	if !o.asOf && !store.Expires(t.tab) && o.lower == nil && o.upper == nil && o.prefix == nil && len(o.where) == 0 &&
		o.using == "" {
		if err := t.store.enter(); err != nil {
			return 0, err
		}
		n, ok := t.published()
		t.store.leave()
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
		}
		if ok {
			if e := o.explain; e != nil {
				*e = scaninfo.Counted(t.tab.Name(), n, time.Since(begin))
			}
			return n, nil
		}
	}
	o.columns, o.all, o.order = nil, false, anyOrder
	for tries := 0; ; tries++ {
		n, err := (&Scan{t: t, ctx: ctx, o: *o}).count()
		if err == nil || !t.store.core.Restarts(ctx, o.asOf, err, tries) {
			return n, err
		}
	}
}

// count returns the number of rows.
func (sc *Scan) count() (int64, error) {
	p, err := sc.startParts("counted")
	if err != nil {
		return 0, err
	}
	defer p.close()
	counts := make([]int64, p.workers)
	err = p.Each(nil, func(worker int, b *batch.RecordBatch) error {
		counts[worker] += int64(b.Selected())
		return nil
	})
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	return n, sc.errorf(err)
}

// published returns the number of live rows. ok reports whether the counters show the published
// state: no batch was between log and publication, and none entered the log while they were read.
func (t *Table) published() (n int64, ok bool) {
	s := t.store
	last := s.core.LastLSN()
	if s.core.InFlight() {
		return 0, false
	}
	n = t.tab.LiveRows()
	return n, s.core.LastLSN() == last
}
