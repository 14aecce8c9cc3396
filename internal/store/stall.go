package store

import (
	"context"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/tablet"
)

// WaitForMemory makes a write batch of so many bytes wait while memory is full, see Writer.Full.
// own are the batch's tables. Errors: the errors of Writer.MakeRoom.
func (s *Store) WaitForMemory(ctx context.Context, bytes int64, own []*tablet.Tablet) error {
	defer s.stall(own)()
	defer s.Background.Poke()
	return s.Writer.MakeRoom(ctx, bytes, own)
}

// stall reports that a writer begins to wait for memory. The caller calls done when the wait has
// ended. No lock is held in between, so that the listener may use the store.
func (s *Store) stall(own []*tablet.Tablet) (done func()) {
	ev := compaction.Event{Begin: true, Job: s.NextJob(), Time: time.Now(), Kind: compaction.Stall,
		Why: fmt.Sprintf("%d bytes of memory are used, writers wait at %d", s.Budget.Used(), s.Options.MemoryLimit/2)}
	if len(own) > 0 {
		ev.Table = own[0].Name()
	}
	c := s.Counters
	c.stalls.Add(1)
	c.stalled.Add(1)
	s.listen(ev)
	return func() {
		c.stalled.Add(-1)
		begin := ev.Time
		ev.Begin, ev.Time = false, time.Now()
		ev.Duration = ev.Time.Sub(begin)
		c.stallTime.Add(int64(ev.Duration))
		s.listen(ev)
	}
}
