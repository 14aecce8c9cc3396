package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
)

// The commands of docs/kudu.md move a table into a cluster: into four tablets, and into one with
// three replicas.
func TestPageMovesTablesIntoClusters(t *testing.T) {
	_, section, _ := strings.Cut(page(t, filepath.Join(module, "docs", "kudu.md")), "\n## Into a cluster\n")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)\n```bash\n(.*?)```\n").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	must.Equal(t, len(blocks), 5)
	create, install, check, compare, replicate := blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]
	single := strings.NewReplacer(`[{"columns": ["host"], "num_buckets": 4}]`, "[]", `"num_replicas": 1`,
		`"num_replicas": 3`).Replace(create)
	t.Run("tablets", func(t *testing.T) {
		m := newMove(t, 1)
		m.create(create)
		m.stop()
		t.Setenv("FS", m.Servers[0].Dir)
		m.run(install)
		m.start(check)
	})
	t.Run("replicas", func(t *testing.T) {
		m := newMove(t, 3)
		m.create(single)
		t.Setenv("TABLET", m.Tablets("metrics")[0])
		m.stop()
		names := []string{"FS1", "FS2", "FS3"}
		for i, server := range m.Servers {
			t.Setenv(names[i], server.Dir)
		}
		// Terms and indexes have one digit: the lines sort like the logs.
		lines := strings.Split(strings.TrimSpace(m.run(compare)), "\n")
		longest, _, _ := strings.Cut(slices.MaxFunc(lines, func(a, b string) int {
			_, a, _ = strings.Cut(a, " ")
			_, b, _ = strings.Cut(b, " ")
			return strings.Compare(a, b)
		}), " ")
		i := slices.IndexFunc(m.Servers, func(s *kudutest.Server) bool { return s.Dir == longest })
		if i < 0 {
			t.Fatalf("the longest log is in %q: %q", longest, lines)
		}
		t.Setenv(names[i], m.Servers[0].Dir)
		t.Setenv(names[0], longest)
		m.run(replicate)
		m.start(check)
	})
}

// The commands of docs/kudu.md copy a table into a running cluster and back.
func TestPageCopiesATableIntoARunningCluster(t *testing.T) {
	_, section, _ := strings.Cut(page(t, filepath.Join(module, "docs", "kudu.md")), "\n## From one machine to a cluster")
	section, _, _ = strings.Cut(section, "\n## ")
	m := newMove(t, 1)
	for i, block := range regexp.MustCompile("(?s)\n```bash\n(.*?)```\n").FindAllStringSubmatch(section, -1) {
		if i == 1 {
			m.run(`oribi table put "$S" metrics '{"host":"c","cpu":1}'`)
		}
		m.run(block[1])
	}
	must.Equal(t, m.run(`oribi table scan "$S" copy`), m.run(`oribi table scan "$S" metrics`), "the copy")
	must.Equal(t, m.run(`oribi table count "$S" copy`), "3\n", "rows")
}

// move is a cluster that gets the table of a store.
type move struct {
	*kudutest.Cluster
	t *testing.T
}

func newMove(t *testing.T, servers int) move {
	t.Helper()
	m := move{kudutest.NewCluster(t, servers), t}
	store := filepath.Join(t.TempDir(), "S")
	for name, value := range map[string]string{"S": store, "MASTER": m.Master,
		"PATH": m.Program() + string(os.PathListSeparator) + os.Getenv("PATH")} {
		t.Setenv(name, value)
	}
	m.run(`oribi store init "$S"
echo '{"columns":[{"name":"host","type":"string","key":true},{"name":"cpu","type":"double","nullable":true}]}' | oribi table create "$S" metrics --schema -
echo '{"ops":[{"op":"insert","table":"metrics","row":{"host":"a","cpu":0.5}},{"op":"insert","table":"metrics","row":{"host":"b"}}]}' | oribi apply "$S" -`)
	m.Start()
	return m
}

// run runs the commands of a block and returns what they print.
func (m move) run(block string) string {
	m.t.Helper()
	var out, errs bytes.Buffer
	must.Equal(m.t, runSh(m.t, "set -e\n"+block, nil, &out, &errs), 0, block, out.String(), errs.String())
	return out.String()
}

// create runs a block that makes a table and checks it. The check is repeated until the followers
// know their leader.
func (m move) create(block string) {
	m.t.Helper()
	table, checked := strings.CutSuffix(block, "kudu cluster ksck \"$MASTER\"\n")
	must.Equal(m.t, checked, true, block)
	m.run(table)
	m.Wait("cluster", "ksck", m.Master)
}

func (m move) stop() {
	for _, s := range m.Servers {
		m.Stop(s)
	}
}

// start starts the servers and runs a check when they are ready.
func (m move) start(check string) {
	m.t.Helper()
	for _, s := range m.Servers {
		m.StartServer(s)
	}
	m.Wait("cluster", "ksck", m.Master)
	m.Await("metrics")
	m.run(check)
	var rows []string
	for _, row := range m.Rows("metrics") {
		rows = append(rows, string(bytes.Join([][]byte{row[0], row[1]}, []byte(" "))))
	}
	must.Equal(m.t, rows, []string{`"a" 0.5`, `"b" null`})
}
