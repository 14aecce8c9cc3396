package store

import (
	"log/slog"

	"github.com/oribi-db/oribi/compaction"
)

// listen calls the listener, unless it is nil.
func (c *Core) listen(e compaction.Event) {
	if c.Options.Listener != nil {
		c.Options.Listener(e)
	}
}

// event counts an event of a job and passes it on.
func (c *Core) event(e compaction.Event) {
	c.Counters.job(&e)
	if e.Begin {
		c.listen(e)
		return
	}
	c.Options.Logger.Debug("compaction", slog.String("kind", string(e.Kind)), slog.String("table", e.Table),
		slog.Int64("bytes", e.BytesWritten), slog.Duration("took", e.Duration), slog.Any("err", e.Err))
	c.listen(e)
}
