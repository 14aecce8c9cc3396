package load

import (
	"bytes"
	"context"
	"io"
	"iter"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// An input with ascending keys, all above the keys of the table, is ingested: its rows are written
// directly to files. An ingest consists of whole batches; an error therefore leaves the same rows
// as without ingests. From the first batch with keys out of order, all batches are committed
// normally. The store is open in this process only, and no key can be inserted concurrently.
//
// Rows that need values of an auto-incrementing column are not ingested, since an ingest does not
// assign them.
//
// A row of more than ingestRowBytes is committed in a write batch, whose error names its line.
const ingestRowBytes = 4 << 20

// ingestLimits bound an ingest, in approximate bytes.
type ingestLimits struct {
	least   int // bytes read ahead before deciding to ingest; 0 = never ingest
	batches int // maximum batches read ahead for that
	most    int // maximum of one ingest, which Ctrl-C does not interrupt
}

var usualIngest = ingestLimits{least: 8 << 20, batches: 64, most: 128 << 20}

// ascendingKeys checks, batch by batch, that keys ascend.
type ascendingKeys struct {
	encoder *keyenc.Encoder
	keys    [][]byte
	last    []byte
}

func (k *ascendingKeys) take(r *rows) bool {
	k.keys = change.AppendVectorKeys(k.keys[:0], k.encoder, r.vectors, 0, r.len())
	last := k.last
	for _, key := range k.keys {
		if bytes.Compare(key, last) <= 0 || len(key) > schema.MaxKeyBytes {
			return false
		}
		last = key
	}
	k.last = append(k.last[:0], last...)
	return true
}

// ingest ingests batches while their keys ascend. next returns those that it has read but not
// ingested.
func (l *loader) ingest(ctx context.Context) error {
	s := l.o.Table.Schema()
	if l.o.SkipBad != nil || l.o.Mode == oribi.OpUpsert || l.limits.least == 0 || s.AutoIncrement() >= 0 {
		return nil
	}
	k := &ascendingKeys{encoder: keyenc.NewEncoder(s)}
	ahead := 0
	for size := 0; size < l.limits.least; ahead++ {
		r, err := l.read(ctx)
		if err != nil {
			l.end = err
			return nil
		}
		l.queue = append(l.queue, r)
		if size += r.bytes; ahead == l.limits.batches || !l.fits(k, r) {
			return nil
		}
	}
	if free, err := l.free(ctx, l.queue[0]); err != nil || !free {
		return err
	}
	for ahead > 0 {
		// Ctrl-C ends the input, but the rows already taken are still ingested.
		taken := int64(0)
		_, _, err := l.o.Table.Ingest(context.WithoutCancel(ctx), l.ascending(ctx, k, &ahead, &taken))
		if err != nil {
			return err
		}
		l.result.Rows += taken
	}
	return nil
}

// fits reports whether a batch can be ingested after the preceding ones.
func (l *loader) fits(k *ascendingKeys, r *rows) bool {
	return r.len() > 0 && r.largest <= ingestRowBytes && k.take(r)
}

// free reports whether the table has no key at or above the first key of rows.
func (l *loader) free(ctx context.Context, r *rows) (bool, error) {
	s := l.o.Table.Schema()
	key := make([][]byte, s.Keys)
	for c := range key {
		key[c] = r.vectors[c].Cell(0)
	}
	for _, err := range l.o.Table.Scan(ctx, oribi.From(key), oribi.Limit(1),
		oribi.Columns(s.Columns[0].Name)).Batches() {
		return false, err
	}
	return true, nil
}

// ascending yields the vectors of one ingest: the vectors of the first ahead batches in the queue,
// which fit, and of the batches after them. It counts the rows in taken. ahead becomes 0 when there
// is nothing more to ingest.
func (l *loader) ascending(
	ctx context.Context, k *ascendingKeys, ahead *int, taken *int64,
) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		for size := 0; *ahead > 0 && size < l.limits.most; {
			r := l.queue[0]
			if !yield(r.vectors, nil) {
				return
			}
			l.queue = l.queue[1:]
			*ahead--
			*taken += int64(r.len())
			size += r.bytes
			l.tell(l.result.Rows + *taken)
			l.give(r)
			if *ahead > 0 {
				continue
			}
			r, err := l.read(ctx)
			if err != nil {
				l.end = err
				return
			}
			l.queue = append(l.queue, r)
			if l.fits(k, r) {
				*ahead++
			}
		}
	}
}

// next returns a batch of the input. Errors: io.EOF at its end; the error that ended it.
func (l *loader) next(ctx context.Context) (r *rows, err error) {
	if len(l.queue) > 0 {
		r, l.queue = l.queue[0], l.queue[1:]
		return r, nil
	}
	if l.end != nil {
		return nil, l.end
	}
	return l.read(ctx)
}

// read returns a batch from the parsing goroutine. It does not return a batch in which the input
// ends with an error.
func (l *loader) read(ctx context.Context) (*rows, error) {
	if l.end != nil {
		return nil, l.end
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r := <-l.ready:
		if l.end = r.err; r.err != nil && r.err != io.EOF {
			return nil, r.err
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give returns the memory of a batch for reuse.
func (l *loader) give(r *rows) {
	select {
	case l.spare <- r:
	default:
	}
}

func (l *loader) tell(rows int64) {
	if l.o.Progress != nil {
		l.o.Progress(rows)
	}
}
