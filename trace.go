package oribi

import (
	"context"

	"github.com/oribi-db/oribi/rowset"
)

// Trace describes how a read finds a key.
type Trace = rowset.Trace

// Explain describes how Get finds a key: which sets of rows it searches and which not, the results
// of their bloom files and key indexes, the changes that it applies, and the bytes that it reads of
// files if nothing is in the cache. It reads these files. The columns are those that Get would
// read.
//
// Errors: as for Get, but a key without a row is not an error. When ctx ends, the trace up to then
// comes with ctx.Err().
func (t *Table) Explain(ctx context.Context, key any, opts ...GetOption) (tr Trace, err error) {
	o := collect(opts)
	for tries := 0; ; tries++ {
		if tr, err = t.explain(ctx, key, o); err == nil || !t.store.core.Restarts(ctx, o.asOf, err, tries) {
			return tr, err
		}
	}
}

func (t *Table) explain(ctx context.Context, key any, o readOptions) (Trace, error) {
	var v view
	err := t.read(ctx, &o, &v)
	if err != nil {
		return Trace{}, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &o)
	if err != nil {
		return Trace{}, err
	}
	encoded, err := t.appendKey(nil, v.TableSchema, key, false)
	if err != nil {
		return Trace{}, err
	}
	tr, err := v.Explain(ctx, encoded, cols)
	return tr, t.errorf(err)
}
