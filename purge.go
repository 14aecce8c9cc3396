package oribi

import (
	"context"

	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
)

// purge deletes the rows that have expired so far.
func (t *Table) purge(ctx context.Context) error {
	if !store.Expires(t.tab) {
		return nil
	}
	c := rowsChange{t: t, op: opPurge, o: collectBulk([]BulkOption{InPieces()}), b: t.store.newBulkBatch()}
	_, err := c.run(ctx)
	return err
}

// purgeKeys deletes the rows with these encoded keys that have expired.
func (t *Table) purgeKeys(ctx context.Context, keys [][]byte) error {
	b := t.store.newBulkBatch()
	p := b.opsOf(t)
	if p == nil {
		return b.err
	}
	for _, key := range keys {
		p.ops = append(p.ops, tablet.Op{Kind: tablet.Purge, Index: b.n, Key: key})
		b.n++
		b.bytes += int64(len(key) + opOverhead)
	}
	_, err := b.Commit(ctx, NoSync)
	return err
}
