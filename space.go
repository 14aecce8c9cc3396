package oribi

import (
	"context"

	"github.com/oribi-db/oribi/internal/tablet"
)

// makeRoom makes a write batch wait while memory is full, and refuses it if the disk has no room.
func (s *Store) makeRoom(ctx context.Context, b *Batch) error {
	if s.core.Writer.Full(b.bytes) {
		var own []*tablet.Tablet
		for _, p := range b.tables {
			own = append(own, p.table.tab)
		}
		if err := s.core.WaitForMemory(ctx, b.bytes, own); err != nil {
			return err
		}
	}
	if s.core.Spare(b.bytes) {
		return nil
	}
	return s.core.MakeSpace(ctx, b.bytes, b.deletesOnly())
}

// deletesOnly reports whether the write batch adds no rows.
func (b *Batch) deletesOnly() bool {
	for _, p := range b.tables {
		for i := range p.ops {
			if kind := p.ops[i].Kind; kind != tablet.Delete && kind != tablet.DeleteIgnore {
				return false
			}
		}
	}
	return true
}
