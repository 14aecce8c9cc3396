package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// writeDir is the environment variable that makes the test program a second process, which writes
// to the store in that directory until it is killed.
const writeDir = "ORIBI_TEST_WRITE"

// TestWriteInSecondProcess is the body of the second process. Batch k inserts row k into both
// tables. It prints k after Commit has returned.
func TestWriteInSecondProcess(t *testing.T) {
	dir := os.Getenv(writeDir)
	if dir == "" {
		t.Skip("runs only as part of another test")
	}
	store := must.Get(oribi.Open(dir, &oribi.Options{LogSegmentBytes: 1 << 16, FlushBytes: 1 << 16}))(t)
	a, b := numbersTable(t, store, "a"), numbersTable(t, store, "b")
	k, err := a.Count(context.Background())
	for ; err == nil; k++ {
		batch := store.NewBatch()
		batch.Insert(a, oribi.Row{"k": k, "v": -k})
		batch.Insert(b, oribi.Row{"k": k, "v": k})
		var opts []oribi.CommitOption
		if k%4 == 0 {
			opts = append(opts, oribi.NoSync)
		}
		if _, err = batch.Commit(context.Background(), opts...); err == nil && k%200 == 199 {
			err = a.Flush(context.Background())
		}
		fmt.Println(k)
	}
	t.Fatal(err)
}

// Writers are killed at any time, one after another. A follower in this process sees whole batches,
// and every batch that was acknowledged before its refresh. No batch disappears.
func TestFollowerOfKilledWriters(t *testing.T) {
	needFollowers(t)
	dir := filepath.Join(t.TempDir(), "store")
	program := must.Get(os.Executable())(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	var s *oribi.Store
	seen := int64(0)
	for round := range rounds {
		cmd := exec.Command(program, "-test.run=^TestWriteInSecondProcess$", "-test.v")
		cmd.Env = append(os.Environ(), writeDir+"="+dir)
		out, err := cmd.StdoutPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		var acknowledged atomic.Int64
		lines, read := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(read)
			for in := bufio.NewScanner(out); in.Scan(); {
				if k, err := strconv.ParseInt(strings.TrimSpace(in.Text()), 10, 64); err == nil {
					if acknowledged.Swap(k+1) == 0 {
						close(lines)
					}
				}
			}
		}()
		within(t, minute, func() { <-lines })
		for n := 0; n < 15 && !t.Failed(); n++ {
			least := acknowledged.Load()
			if s == nil {
				s, err = oribi.Open(dir, &oribi.Options{Follow: true})
			} else {
				err = s.Refresh(t.Context())
			}
			must.Do(t, err, "round", round, "look", n)
			rows, err := countBoth(t.Context(), s)
			if err != nil || rows < least || rows < seen {
				t.Errorf("round %d, look %d: %d rows, %v, want at least %d and %d", round, n, rows, err, least, seen)
			}
			seen = rows
			must.Do(t, s.Wait(t.Context()))
		}
		cmd.Process.Kill()
		<-read
		cmd.Wait()
		least := acknowledged.Load()
		must.Do(t, s.Refresh(t.Context()))
		if rows, err := countBoth(t.Context(), s); err != nil || rows < least || rows < seen {
			t.Errorf("round %d, after the kill: %d rows, %v, want at least %d and %d", round, rows, err, least, seen)
		}
	}
	must.Do(t, s.Close())
	t.Logf("%d rows", seen)
}

// countBoth returns the number of rows in each of two tables, which must be equal, and have the
// keys from 0 on.
func countBoth(ctx context.Context, s *oribi.Store) (int64, error) {
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer sn.Close()
	var counts [2]int64
	for i, name := range []string{"a", "b"} {
		t, err := s.Table(name)
		if errors.Is(err, oribi.ErrNoTable) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		for row, err := range t.Scan(ctx, oribi.At(sn)).Rows() {
			if err != nil {
				return 0, err
			}
			if row["k"] != counts[i] {
				return 0, fmt.Errorf("table %s: row %d is %v", name, counts[i], row)
			}
			counts[i]++
		}
	}
	if counts[0] != counts[1] {
		return 0, fmt.Errorf("%d and %d rows", counts[0], counts[1])
	}
	return counts[0], nil
}
