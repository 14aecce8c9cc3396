package store

import (
	"context"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// host is the store as its tablets see it.
type host struct{ *Store }

func (h host) NewCreation() *blockmanager.Creation { return h.Blocks.NewCreation() }

func (h host) BlockBytes(dst []int64, ids ...block.ID) []int64 { return h.Blocks.Lengths(dst, ids...) }

func (h host) Wait(ctx context.Context, at lsn.LSN) error { return h.Writer.Wait(ctx, at) }

func (h host) Timestamp() (mvcc.Timestamp, error) { return h.Clock.Now() }

func (h host) Append(rec *record.Writer, table uint32) (mvcc.Timestamp, lsn.LSN, func(), error) {
	return h.Writer.Announce(rec, table)
}

// Retained returns the present time less the retention as the floor, or a lower timestamp if a pin
// retains all states after it. The floor is Min where Timeline.Oldest is. It is never less than the table's present floor, which a longer retention does not
// lower. From then on, reads of the table below the floor are refused, except those of the points,
// which are pinned.
func (h host) Retained(t *tablet.Tablet, historySec int64) mvcc.Retained {
	floor := h.Oldest(historySec, t.Metadata().Created)
	if h.InFlight() {
		floor = min(floor, h.Visible()) // reads of the newest state do not see what is in flight
	}
	return h.Pins.Choose(t, floor)
}

func (h host) Retains(t *tablet.Tablet, ts mvcc.Timestamp) bool { return h.Pins.Retains(t.Number, ts) }

// Now is 0 for a clock that is not a physical one.
func (h host) Now() mvcc.Timestamp { return h.PhysicalTime() }

func (h host) Event(e compaction.Event) { h.event(e) }

// CommitMeta adds to the edits what every metadata commit contains, commits them, installs them in
// memory, and removes the log segments that the confirmed metadata does not need.
func (h host) CommitMeta(tables ...tablet.MetaCommit) error {
	w := h.Writer
	if err := w.commitMeta(tables); err != nil {
		return err
	}
	failed := ErrPanic
	defer func() {
		if failed != nil { // memory does not show what the metadata says
			w.Poison(failed)
		}
	}()
	for i := range tables {
		if failed = tables[i].Install(); failed != nil {
			return failed
		}
	}
	return w.ReleaseLog()
}
