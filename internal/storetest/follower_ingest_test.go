package storetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// A follower shows no batch that is in the log after an ingest in flight, as the writer shows none.
// When the ingest has failed, it shows them, whether it was opened before or after.
func TestFollowerWaitsForIngestInFlight(t *testing.T) {
	needFollowers(t)
	for _, fails := range []bool{false, true} {
		name := "fails=no"
		if fails {
			name = "fails=yes"
		}
		t.Run(name, func(t *testing.T) { ingestInFlight(t, fails) })
	}
}

func ingestInFlight(t *testing.T, fails bool) {
	mem := vfs.NewMem()
	disk := faultfs.New(mem)
	store, err := oribi.Open("/store", &oribi.Options{FS: disk, Manual: true})
	must.Do(t, err)
	defer store.Close()
	a, b := numbersTable(t, store, "a"), numbersTable(t, store, "b")
	var armed atomic.Bool
	logged, committed := make(chan struct{}, 1), make(chan error, 1)
	disk.WatchDone(func(c faultfs.Call) {
		if armed.Load() && strings.HasSuffix(c.Name, ".wal") && (c.Op == faultfs.Write || c.Op == faultfs.Copy) {
			select {
			case logged <- struct{}{}:
			default:
			}
		}
	})
	content := func(s *oribi.Store) string {
		return must.Get(followers.Content(s))(t)
	}
	var early *oribi.Store
	const before = "a:; b: 0=0; "
	disk.Watch(func(c faultfs.Call) error {
		if c.Op != faultfs.Write || !strings.HasSuffix(c.Name, "ANCHOR") || !armed.Load() {
			return nil
		}
		// The ingest into a is in the log. Now a batch of b gets there.
		for len(logged) > 0 {
			<-logged
		}
		go func() {
			batch := store.NewBatch()
			batch.Insert(b, oribi.Row{"k": 1, "v": -1})
			_, err := batch.Commit(context.Background(), oribi.NoSync)
			committed <- err
		}()
		<-logged
		armed.Store(false)
		if early = openFollower(t, mem); content(early) != before {
			t.Errorf("with an ingest in flight the follower has %q, want %q", content(early), before)
		}
		// If the writer were killed now, the next one could still show the batch, which is in the
		// log.
		late := openFollower(t, mem.Clone())
		ctx, cancel := context.WithTimeout(t.Context(), briefly)
		defer cancel()
		n, err := late.Tables()[1].Count(ctx, oribi.AsOf(mvcc.FromTime(time.Now())))
		if err == nil {
			t.Errorf("as of the present, a follower without a writer has %d rows, and does not see a batch in the log",
				n)
		}
		if fails {
			return vfs.NoSpaceError(errors.New("full"))
		}
		return nil
	})
	fillNumbers(t, store, b, 0, 1)
	armed.Store(true)
	_, _, err = a.Ingest(t.Context(), steps(func() {}, numbers(100, 101)))
	if fails != errors.Is(err, oribi.ErrNoSpace) {
		t.Fatalf("ingest: %v", err)
	}
	must.Do(t, <-committed)
	want := "a: 100=1000 101=1010; b: 0=0 1=-1; "
	if fails {
		want = "a:; b: 0=0 1=-1; "
	}
	must.Do(t, early.Refresh(t.Context()))
	must.Equal(t, content(early), want, "the follower after the ingest")
	must.Equal(t, content(openFollower(t, mem)), want, "a follower that is opened later")
}
