package oribi

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/tablet"
)

// stall reports that the writer of b begins to wait for memory. The caller calls done when the wait
// has ended. No lock is held in between, so that the listener may use the store.
func (s *Store) stall(b *Batch) (done func()) {
	ev := Event{Begin: true, Job: s.core.NextJob(), Time: time.Now(), Kind: compaction.Stall,
		Why: fmt.Sprintf("%d bytes of memory are used, writers wait at %d", s.core.Budget.Used(), s.opts.MemoryLimit/2)}
	if len(b.tables) > 0 {
		ev.Table = b.tables[0].table.Name()
	}
	c := s.counters
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

// listen calls the listener, unless it is nil.
func (s *Store) listen(e Event) {
	if s.opts.Listener != nil {
		s.opts.Listener(e)
	}
}

// event counts an event of a job and passes it on.
func (s *Store) event(e Event) {
	s.counters.job(&e)
	if e.Begin {
		s.listen(e)
		return
	}
	s.opts.Logger.Debug("compaction", slog.String("kind", string(e.Kind)), slog.String("table", e.Table),
		slog.Int64("bytes", e.BytesWritten), slog.Duration("took", e.Duration), slog.Any("err", e.Err))
	s.listen(e)
}

// makeRoom makes a write batch wait while memory is full.
func (s *Store) makeRoom(ctx context.Context, b *Batch) error {
	if !s.writer.Full(b.bytes) {
		return nil
	}
	defer s.stall(b)()
	defer s.background.Poke()
	var own []*tablet.Tablet
	for _, p := range b.tables {
		own = append(own, p.table.tab)
	}
	return s.writer.MakeRoom(ctx, b.bytes, own)
}
