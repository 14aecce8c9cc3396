package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// connect starts a cluster and returns a client of it.
func connect(t *testing.T, servers int) (*kudutest.Cluster, *client.Client) {
	t.Helper()
	cluster := kudutest.NewCluster(t, servers)
	cluster.Start()
	c, err := client.Connect(t.Context(), []string{cluster.Master}, &client.Options{User: "alice"})
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return cluster, c
}

// openStore makes a store in a directory of the test's.
func openStore(t *testing.T) *oribi.Store {
	t.Helper()
	s := must.Get(oribi.Open(t.TempDir(), nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// someTable makes a table with columns of several types.
func someTable(t *testing.T, s *oribi.Store) *oribi.Table {
	t.Helper()
	columns := must.Get(schema.New([]schema.Column{
		{Name: "host", Type: schema.String, Key: true},
		{Name: "at", Type: schema.Timestamp, Key: true},
		{Name: "usage", Type: schema.Double, Nullable: true},
		{Name: "cents", Type: schema.Decimal64, Precision: 12, Scale: 2, Nullable: true},
		{Name: "note", Type: schema.String, Nullable: true},
		{Name: "ok", Type: schema.Bool},
	}))(t)
	return must.Get(s.CreateTable("metrics", columns))(t)
}

// churn makes n random writes.
func churn(t *testing.T, r *rand.Rand, s *oribi.Store, table *oribi.Table, n int) {
	t.Helper()
	b := s.NewBatch()
	for range n {
		key := oribi.Row{"host": fmt.Sprint("host-", r.IntN(30)), "at": time.UnixMicro(int64(r.IntN(40)))}
		if r.IntN(4) == 0 {
			b.DeleteIgnore(table, key)
			continue
		}
		key["usage"], key["ok"], key["note"] = r.NormFloat64(), r.IntN(2) == 0, fmt.Sprint("note ", r.IntN(1000))
		if r.IntN(3) == 0 {
			key["note"] = nil
		}
		b.Upsert(table, key)
	}
	must.Get(b.Commit(t.Context()))(t)
}

// mustAgree compares a table with its copy.
func mustAgree(t *testing.T, table *oribi.Table, c *client.Client, o CompareOptions) {
	t.Helper()
	there := must.Get(c.OpenTable(t.Context(), "metrics"))(t)
	for d, err := range Compare(t.Context(), table, there, o) {
		must.Do(t, err)
		t.Fatalf("key %v: here %v, there %v", d.Key, d.Here, d.There)
	}
}

// A table is copied, and later calls send what has changed.
func TestPushCopiesATable(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	s := openStore(t)
	table := someTable(t, s)
	for i := range 4 {
		churn(t, r, s, table, 500)
		p := must.Get(Push(t.Context(), s, table, Target{Cluster: c, Replicas: 1}, nil))(t)
		must.Equal(t, p.Timestamp, s.Visible(), "timestamp")
		if p.Rows == 0 || p.Written == 0 {
			t.Errorf("push %d: %+v", i, p)
		}
		mustAgree(t, table, c, CompareOptions{There: p.Written + 1})
	}
	churn(t, r, s, table, 100)
	there := must.Get(c.OpenTable(t.Context(), "metrics"))(t)
	n := 0
	for _, err := range Compare(t.Context(), table, there, CompareOptions{}) {
		must.Do(t, err)
		n++
	}
	if n == 0 {
		t.Error("no differences after writes")
	}
}

// A table is followed while it is written and altered; the copy goes on after it was stopped.
func TestSyncFollowsATable(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	s := openStore(t)
	table := someTable(t, s)
	to := Target{Cluster: c, Replicas: 1}
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		statuses := make(chan Status, 1000)
		ended := make(chan error, 1)
		go func() {
			ended <- Sync(ctx, s, table, to, &Options{Interval: 10 * time.Millisecond, Progress: func(s Status) { statuses <- s }})
		}()
		for i := range 20 {
			churn(t, r, s, table, 50)
			if round == 1 && i == 10 {
				must.Do(t, table.Alter(t.Context(), oribi.RenameColumn("note", "remark"),
					oribi.AddColumn(schema.Column{Name: "level", Type: schema.Int32}, int32(7)), oribi.DropColumn("cents"),
					oribi.AddColumn(schema.Column{Name: "note", Type: schema.String, Nullable: true})))
			}
		}
		for done := mvcc.Timestamp(0); done < s.Visible(); {
			select {
			case status := <-statuses:
				done = status.Timestamp
			case err := <-ended:
				t.Fatalf("round %d: sync has ended: %v", round, err)
			}
		}
		cancel()
		must.Do(t, <-ended)
		mustAgree(t, table, c, CompareOptions{})
		churn(t, r, s, table, 50)
	}
}

// While the cluster is away, the copy waits for it, and then has what was written meanwhile.
func TestSyncWaitsForACluster(t *testing.T) {
	cluster, _ := connect(t, 1)
	c := must.Get(client.Connect(t.Context(), []string{cluster.Master}, &client.Options{User: "alice", Timeout: 500 * time.Millisecond}))(t)
	defer c.Close()
	r := seedtest.Rand(t)
	s := openStore(t)
	table := someTable(t, s)
	churn(t, r, s, table, 200)
	must.Get(Push(t.Context(), s, table, Target{Cluster: c, Replicas: 1}, nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cluster.Stop(cluster.Servers[0])
	away, done := make(chan string, 100), make(chan Status, 10000)
	ended := make(chan error, 1)
	go func() {
		err := Sync(ctx, s, table, Target{Cluster: c}, &Options{Interval: 10 * time.Millisecond, Settle: time.Millisecond,
			Session: client.SessionOptions{Timeout: 500 * time.Millisecond},
			Note:    func(text string) { away <- text }, Progress: func(s Status) { done <- s }})
		away <- fmt.Sprint("ended: ", err)
		ended <- err
	}()
	churn(t, r, s, table, 200)
	for text := ""; !strings.Contains(text, "trying again"); {
		if text = <-away; strings.HasPrefix(text, "ended") {
			t.Fatal(text)
		}
	}
	cluster.StartServer(cluster.Servers[0])
	churn(t, r, s, table, 200)
	last := Status{}
	for last.Timestamp < s.Visible() {
		last = <-done
	}
	if last.Failed == 0 {
		t.Error("the status counts no failure")
	}
	cancel()
	must.Do(t, <-ended)
	mustAgree(t, table, c, CompareOptions{})
}

// A table of a cluster is copied into a store and followed there.
func TestFollowKeepsACopyInStep(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	from, into := openStore(t), openStore(t)
	table := someTable(t, from)
	push := func() {
		t.Helper()
		must.Get(Push(t.Context(), from, table, Target{Cluster: c, Replicas: 1}, nil))(t)
	}
	churn(t, r, from, table, 2000)
	push()
	p := must.Get(Pull(t.Context(), c, "metrics", into, "", nil))(t)
	copied := must.Get(into.Table("metrics"))(t)
	must.Equal(t, p.Rows, must.Get(copied.Count(t.Context()))(t), "rows")
	mustAgree(t, copied, c, CompareOptions{})
	for i := range 4 {
		churn(t, r, from, table, 100)
		if i == 2 {
			must.Do(t, table.Alter(t.Context(), oribi.AddColumn(schema.Column{Name: "level", Type: schema.Int32}, int32(7))))
		}
		push()
		must.Do(t, Follow(t.Context(), c, "metrics", into, "", &PullOptions{Once: true}))
		mustAgree(t, copied, c, CompareOptions{})
	}
	_, err := Pull(t.Context(), c, "metrics", into, "", nil)
	must.Equal(t, errors.Is(err, oribi.ErrExists), true, "a second pull")
}

// What Kudu cannot have is listed before anything is written.
func TestUnsuitableTablesAreRefused(t *testing.T) {
	s := openStore(t)
	columns := must.Get(schema.New([]schema.Column{
		{Name: "id", Type: schema.Int64, Key: true},
		{Name: "big", Type: schema.Int128, Nullable: true},
		{Name: "at", Type: schema.Timestamp, Nullable: true},
	}))(t)
	table := must.Get(s.CreateTable("t", columns, oribi.Expires("at", time.Hour)))(t)
	list := Unsuitable(table)
	if len(list) != 2 || !slices.ContainsFunc(list, func(s string) bool { return s != "" }) {
		t.Errorf("%q", list)
	}
}
