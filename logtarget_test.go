package oribi

import (
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A log whose segments are longer than it should become is flushed once in a segment or two. A
// flush does not make the newest segment shorter, so it must not be due again after the next write
// batch.
func TestLargeLogSegmentsCauseFewFlushes(t *testing.T) {
	const maxLog, segment, batch, batches = 8 << 10, 64 << 10, 1 << 10, 500
	store := must.Get(
		Open("/store", &Options{FS: vfs.NewMem(), Manual: true, LogSegmentBytes: segment, logLimit: maxLog}))(t)
	defer store.Close()
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	flushes := 0
	longest := int64(0)
	for k := range batches {
		b := store.NewBatch()
		b.Insert(table, Row{"k": k, "v": strings.Repeat("v", batch)})
		must.Get(b.Commit(t.Context(), NoSync))(t)
		longest = max(longest, store.core.Writer.Log.Bytes())
		for ran := true; ran; {
			var op BackgroundOp
			op, ran = must.Get2(store.StepBackgroundWork(t.Context()))(t)
			if op.Kind == "flush" {
				flushes++
			}
		}
	}
	if most := batches * batch / segment; flushes == 0 || flushes > most {
		t.Errorf("%d flushes in %d segments of log", flushes, most)
	}
	if longest > 3*segment+2*batch {
		t.Errorf("the log has grown to %d bytes with segments of %d", longest, segment)
	}
}
