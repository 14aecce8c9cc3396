package main

import (
	"bufio"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// The command that copies a table into a cluster is killed again and again while this process writes
// the table. The next one goes on, and at the end the tables are equal.
func TestKilledSyncGoesOn(t *testing.T) {
	corpustest.NeedKudu(t)
	r := seedtest.Rand(t)
	cluster := kudutest.NewCluster(t, 1)
	cluster.Start()
	dir := filepath.Join(t.TempDir(), "S")
	s := must.Get(oribi.Open(dir, nil))(t)
	defer s.Close()
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64, Key: true},
		{Name: "v", Type: schema.String, Nullable: true}}, 1))(t)
	table := must.Get(s.CreateTable("t", columns))(t)
	verb := func(verb string, more ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), binary,
			append([]string{"kudu", verb, dir, "t", "--masters", cluster.Master, "--user", "alice"}, more...)...)
	}
	writeRandom(t, r, s, table)
	for range seedtest.Rounds(9, 2) {
		killedSync(t, r, verb("sync", "--status-every", "1ns", "--replicas", "1", "--settle", "500ms"), func() { writeRandom(t, r, s, table) })
		writeRandom(t, r, s, table)
	}
	out, err := verb("sync", "--once", "--settle", "500ms").CombinedOutput()
	must.Do(t, err, string(out))
	out, err = verb("compare").CombinedOutput()
	must.Do(t, err, string(out))
}

// killedSync runs a command, and kills it at a random moment between the writes that follow some of its
// lines.
func killedSync(t *testing.T, r *rand.Rand, sync *exec.Cmd, write func()) {
	t.Helper()
	out := must.Get(sync.StdoutPipe())(t)
	must.Do(t, sync.Start())
	lines := bufio.NewScanner(out)
	for range 1 + r.IntN(3) { // the command prints one at least
		if !lines.Scan() {
			t.Fatalf("the command ended: %v", sync.Wait())
		}
		for range 1 + r.IntN(6) {
			write()
		}
	}
	must.Do(t, sync.Process.Kill())
	sync.Wait() // killed: an error
}

// writeRandom commits a batch of changes of few keys.
func writeRandom(t *testing.T, r *rand.Rand, s *oribi.Store, table *oribi.Table) {
	t.Helper()
	b := s.NewBatch()
	for range 300 {
		key := oribi.Row{"k": r.Int64N(2000)}
		if r.IntN(3) == 0 {
			b.DeleteIgnore(table, key)
			continue
		}
		key["v"] = string(rune('a' + r.IntN(4)))
		b.Upsert(table, key)
	}
	must.Get(b.Commit(t.Context()))(t)
}
