package tablecmd

import (
	"bytes"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestTruncateDeletesMoreRowsThanFitOneWriteBatch(t *testing.T) {
	store := must.Get(oribi.Open(t.TempDir(), &oribi.Options{MemoryLimit: 16 << 20}))(t)
	defer store.Close()
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "at", Type: schema.Timestamp}}, 1))(t)
	// Whether a row has expired depends on its cells, so the deletes are listed.
	table := must.Get(store.CreateTable("t", columns, oribi.Expires("at", time.Hour)))(t)
	now := time.Now().Truncate(time.Microsecond)
	const rows = 120_000
	for from := 0; from < rows; from += 5000 {
		b := store.NewBatch()
		for k := from; k < from+5000; k++ {
			b.Insert(table, oribi.Row{"k": int64(k), "at": now})
		}
		must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
	}
	if _, err := table.Truncate(t.Context()); err == nil {
		t.Fatal("the rows fit one write batch: the test needs more")
	}
	var errs bytes.Buffer
	a := &console.Console{Stderr: &errs}
	must.Do(t, truncate(t.Context(), a, table))
	if n, err := table.Count(t.Context()); n != 0 || err != nil || errs.String() != "deleted 120000 rows\n" {
		t.Errorf("%d rows left, error %v; printed %q", n, err, errs.String())
	}
}
