package client

import (
	"testing"

	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// A server that enforces access control takes the table's token in writes, scans, and checksums. Without
// it, the client gets a new one.
func TestServersThatDemandTokens(t *testing.T) {
	cluster := kudutest.NewCluster(t, 1)
	cluster.Servers[0].Flags = []string{"--tserver_enforce_access_control=true"}
	cluster.Start()
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, nil))(t)
	defer c.Close()
	s := must.Get(schema.New(rowColumns, 2))(t)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "t", Schema: s, Replicas: 1}))(t)
	forget := func() {
		table.authz.mu.Lock()
		defer table.authz.mu.Unlock()
		table.authz.token = nil
	}
	for round := range 2 {
		session := must.Get(table.NewSession(t.Context(), nil))(t)
		for k := range 50 {
			must.Do(t, session.Apply(t.Context(), Upsert, [][]byte{int32Cell(k), []byte("n"), nil, nil}))
		}
		must.Equal(t, must.Get(session.Flush(t.Context()))(t).Rows, 50)
		must.Do(t, session.Close())
		if round == 0 {
			forget()
		}
		n, _ := must.Get2(table.Count(t.Context(), ScanOptions{}))(t)
		must.Equal(t, n, 50)
		if round == 0 {
			forget()
		}
		sums, _ := must.Get2(table.Checksum(t.Context(), ScanOptions{}))(t)
		must.Equal(t, sums[0].Rows, 50)
		if table.authz.current() == nil {
			t.Error("no token")
		}
		forget()
	}
}
