package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// countDir is the environment variable that makes the test program a second process, which counts in the
// store in that directory until it is killed.
const countDir = "ORIBI_TEST_COUNT"

// counters is the number of goroutines of the second process.
const counters = 8

// TestCountInSecondProcess is the body of the second process. Each goroutine adds to row 0 and to a row of its
// own, half of them in transactions. It prints "begin" before a commit, and the value of row 0 after it.
func TestCountInSecondProcess(t *testing.T) {
	dir := os.Getenv(countDir)
	if dir == "" {
		t.Skip("runs only as part of another test")
	}
	ctx := context.Background()
	store := must.Get(oribi.Open(dir, &oribi.Options{LogSegmentBytes: 1 << 16, FlushBytes: 1 << 14}))(t)
	table := numbersTable(t, store, "counters")
	var wg sync.WaitGroup
	for g := range counters {
		wg.Go(func() {
			shared, own := oribi.Row{"k": 0, "v": oribi.Add(1)}, oribi.Row{"k": 1 + g, "v": oribi.Add(1)}
			for i := 0; ; i++ {
				fmt.Println("begin")
				var results []oribi.Result
				var err error
				if g%2 == 0 {
					b := store.NewBatch()
					b.Upsert(table, shared)
					b.Upsert(table, own)
					_, err = b.Commit(ctx)
					results = b.Results()
				} else {
					var last *oribi.Tx
					err = store.Update(ctx, func(tx *oribi.Tx) error {
						last = tx
						if err := tx.Upsert(table, shared); err != nil {
							return err
						}
						return tx.Upsert(table, own)
					})
					results = last.Results()
				}
				if err == nil && g == 0 && i%100 == 99 {
					err = table.Flush(ctx)
				}
				if err != nil {
					t.Error(err)
					os.Exit(1)
				}
				fmt.Println(results[0].Value)
			}
		})
	}
	wg.Wait()
}

// A process that counts is killed, again and again. Each increment that it has acknowledged is counted once:
// its value was no other's, and the counter is between the increments that were acknowledged and those that were
// begun, and the sum of what each goroutine has counted.
func TestIncrementsOfKilledProcessesCountOnce(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	program := must.Get(os.Executable())(t)
	rng := seedtest.Rand(t)
	counted := int64(0)
	seen := map[int64]bool{}
	for range seedtest.Rounds(6, 2) {
		cmd := exec.Command(program, "-test.run=^TestCountInSecondProcess$", "-test.v")
		cmd.Env = append(os.Environ(), countDir+"="+dir)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		enough := 1 + rng.IntN(2000)
		begun, acknowledged := int64(0), int64(0)
		within(t, minute, func() {
			for in := bufio.NewScanner(out); in.Scan(); {
				var value int64
				if in.Text() == "begin" {
					begun++
				} else if n, _ := fmt.Sscan(in.Text(), &value); n == 1 {
					if acknowledged++; seen[value] {
						t.Errorf("two increments to %d", value)
					}
					seen[value] = true
				}
				if begun == int64(enough) {
					cmd.Process.Kill()
				}
			}
		})
		cmd.Wait()
		if acknowledged > begun || begun-acknowledged > counters {
			t.Errorf("%d increments were acknowledged of %d", acknowledged, begun)
		}
		store := must.Get(oribi.Open(dir, nil))(t)
		rows := must.Get(numbersOf(must.Get(store.Table("counters"))(t).Scan(ctx).Rows()))(t)
		sum := int64(0)
		for k, v := range rows {
			if k > 0 {
				sum += v
			}
		}
		if n := rows[0] - counted; n < acknowledged || n > begun || sum != rows[0] {
			t.Errorf("%d increments are counted, of %d to %d; the counter is %d, the sum %d", n, acknowledged, begun, rows[0], sum)
		}
		counted = rows[0]
		must.Do(t, store.Close())
	}
	t.Logf("%d increments, %d acknowledged", counted, len(seen))
}
