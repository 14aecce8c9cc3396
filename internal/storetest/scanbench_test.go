package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// measure has columns of the common encodings.
type measure struct {
	Key    int64  `oribi:"key,key"`
	Number int64  `oribi:"number"` // bitshuffle
	Few    *int32 `oribi:"few"`    // bitshuffle, every fifth NULL
	Word   string `oribi:"word"`   // dictionary
	Text   string `oribi:"text"`   // plain: all are different
}

// BenchmarkScan compares scans in ascending and descending key order.
func BenchmarkScan(b *testing.B) {
	const n = 50_000
	// put upserts every step-th row.
	layouts := map[string]func(t *oribi.Table, put func(from, step int)) error{
		"one": func(t *oribi.Table, put func(from, step int)) error {
			put(0, 1)
			return t.Flush(b.Context())
		},
		"overlapping": func(t *oribi.Table, put func(from, step int)) (err error) {
			for i := 0; i < 3 && err == nil; i++ {
				put(i, 3)
				err = t.Flush(b.Context())
			}
			return err
		},
		"deltas": func(t *oribi.Table, put func(from, step int)) error {
			put(0, 1)
			if err := t.Flush(b.Context()); err != nil {
				return err
			}
			put(0, 10)
			_, err := t.FlushDeltas(b.Context())
			put(5, 10)
			return err
		},
		"memory": func(t *oribi.Table, put func(from, step int)) error {
			put(0, 1)
			return nil
		},
	}
	for _, layout := range []string{"one", "overlapping", "deltas", "memory"} {
		store, err := oribi.Open("/bench",
			&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true,
				History: oribi.HistoryForever})
		must.Do(b, err)
		table, err := oribi.OpenTable[measure](store, "measures")
		must.Do(b, err)
		err = layouts[layout](table.Table, func(from, step int) {
			w := store.NewBatch()
			for i := from; i < n; i += step {
				m := measure{Key: int64(i), Number: int64(i) * 2654435761 % 1_000_003, Word: fmt.Sprint("word ", i%100),
					Text: fmt.Sprint("text of row ", i)}
				if few := int32(i % 1000); i%5 > 0 {
					m.Few = &few
				}
				table.InBatch(w).Upsert(m)
			}
			must.Do(b, must.Err(w.Commit(b.Context(), oribi.NoSync)))
		})
		must.Do(b, err)
		for _, columns := range [][]string{{"number"}, {"word"}, {"text"}, {"key", "number", "few", "word", "text"}} {
			for _, order := range []string{"key", "desc"} {
				b.Run(fmt.Sprintf("layout=%s/columns=%s/order=%s", layout, strings.Join(columns, "+"), order),
					func(b *testing.B) {
						for b.Loop() {
							opts := []oribi.ScanOption{oribi.Columns(columns...)}
							if order == "desc" {
								opts = append(opts, oribi.Desc())
							}
							rows := 0
							for batch, err := range table.Table.Scan(b.Context(), opts...).Batches() {
								must.Do(b, err)
								rows += batch.Selected()
							}
							must.Equal(b, rows, n, "rows")
						}
						b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
					})
			}
		}
		must.Do(b, store.Close())
	}
}
