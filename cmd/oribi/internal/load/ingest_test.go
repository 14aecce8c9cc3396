package load

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// ascendingText returns rows whose keys ascend from first, up to a disorder or fault, if there is
// one.
func ascendingText(r *rand.Rand, first int) string {
	var lines []string
	k := first
	for range 1 + r.IntN(300) {
		lines = append(lines, fmt.Sprintf("%d,v%d", k, r.IntN(10)))
		k += 1 + r.IntN(3)
	}
	at := r.IntN(len(lines))
	switch r.IntN(6) {
	case 0:
		lines[at] = "x,bad"
	case 1:
		lines[at] = lines[r.IntN(len(lines))] // duplicate or out of order
	case 2:
		slices.Reverse(lines[at:])
	case 3:
		lines[at] = "\"" + lines[at]
	case 4:
		lines[at] = fmt.Sprintf("%d,v", first-1)
	}
	return "k,v\n" + strings.Join(lines, "\n") + "\n"
}

// An ingest gives the same rows, counts and errors as write batches.
func TestIngestedLoadsMatchCommittedLoads(t *testing.T) {
	r := seedtest.Rand(t)
	ctx := context.Background()
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	ingested := 0
	for range rounds {
		first := r.IntN(200)
		texts := []string{ascendingText(r, first), ascendingText(r, first+r.IntN(400))}
		size := 1 + r.IntN(30)
		mode := []oribi.Op{oribi.OpInsert, oribi.OpInsertIgnore}[r.IntN(2)]
		limits := ingestLimits{least: 1 + r.IntN(5000), batches: 20, most: 1 + r.IntN(10_000)}
		var results [2]string
		for way, limits := range []ingestLimits{{}, limits} {
			store, table := pairs(t)
			for _, text := range texts {
				o := options(store, table)
				o.Rows, o.Mode = size, mode
				result, err := run(ctx, strings.NewReader(text), o, limits)
				results[way] += fmt.Sprintf("%d rows, %v\n", result.Rows, err)
			}
			results[way] += printed(t, table, output.CSV)
			if way == 1 {
				stats := must.Get(table.Stats(false))(t)
				ingested += stats.RowSets
			}
		}
		if results[0] != results[1] {
			t.Fatalf("batches of %d, %+v:\n%s\n%s\nin write batches\n%s\ningested\n%s", size, limits, texts[0],
				texts[1], results[0], results[1])
		}
	}
	if ingested == 0 {
		t.Error("nothing was ingested")
	}
}

// A load that is interrupted during an ingest ends at a batch, and the rows it reports are in the
// table.
func TestInterruptedIngestsEndAtABatch(t *testing.T) {
	store, table := pairs(t)
	ctx, cancel := context.WithCancel(context.Background())
	o := options(store, table)
	o.Rows = 10
	o.Progress = func(rows int64) {
		if rows == 100 {
			cancel()
		}
	}
	var text bytes.Buffer
	text.WriteString("k,v\n")
	for k := range 1000 {
		fmt.Fprintf(&text, "%d,x\n", k)
	}
	result, err := run(ctx, &text, o, ingestLimits{least: 1, batches: 1, most: 1 << 30})
	if err != context.Canceled || result.Rows < 100 || result.Rows%10 != 0 || count(t, table) != result.Rows {
		t.Errorf("%+v, %v, %d rows are in the table", result, err, count(t, table))
	}
}
