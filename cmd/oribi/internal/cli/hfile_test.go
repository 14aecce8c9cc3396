package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenHFile has the fields of a line in the manifest of HFiles that tests use.
type goldenHFile struct {
	Name     string
	Codec    string
	Encoding string
	Writer   string
	Cells    int
	Values   string
	Seeks    string
	Probes   string
	Info     string
	HudiInfo string `json:"hudi_info"`
	Bloom    string
	Meta     []struct{ Name, SHA256 string }

	dir  string
	view string
}

// eachGoldenHFile runs test on the HFiles of the corpus, with -short on some of them. LZO is not
// among them.
func eachGoldenHFile(t *testing.T, test func(t *testing.T, g *goldenHFile)) {
	root := filepath.Join(corpustest.Dir(t), "golden", "hfile")
	for i, line := range corpustest.Lines(t, filepath.Join(root, "manifest.jsonl")) {
		g := new(goldenHFile)
		must.Do(t, json.Unmarshal([]byte(line), g))
		// The tests of package hfile read all of them.
		if g.Codec == "LZO" || i%4 != 0 || testing.Short() && i%12 != 0 {
			continue
		}
		g.view = filepath.Dir(g.Name)
		g.dir = filepath.Join(root, g.view)
		t.Run(g.Name, func(t *testing.T) { test(t, g) })
	}
}

func (g *goldenHFile) path() string {
	return filepath.Join(g.dir, filepath.Base(g.Name)+".hfile")
}

// text returns an expected text of the file.
func (g *goldenHFile) text(t *testing.T, name string) string {
	return string(corpustest.Read(t, filepath.Join(g.dir, name)))
}

// run runs a verb on the file in the view of its writer.
func (g *goldenHFile) run(t *testing.T, verb string, args ...string) string {
	t.Helper()
	return succeed(t, append([]string{"hfile", verb, g.path(), "--view", g.view}, args...)...)
}

// same compares an output with the expected one and shows the first line that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		must.Equal(t, g[i], w[i], what, i+1)
	}
	t.Fatalf("%s: %d lines, want %d", what, len(g)-1, len(w)-1)
}

func TestHFileDumpPrintsGoldenEntries(t *testing.T) {
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		want := g.text(t, g.Values)
		same(t, "dump", g.run(t, "dump"), want)
		must.Equal(t, succeed(t, "hfile", "verify", g.path()), "ok\n")
		var list []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(g.run(t, "dump", "--format", "json")), &list))
		must.Equal(t, len(list), g.Cells, "entries as JSON")
	})
}

// The limits choose the lines between them.
func TestHFileDumpObeysLimits(t *testing.T) {
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		lines := slices.Collect(strings.Lines(g.text(t, g.Values)))
		if len(lines) < 3 {
			return
		}
		row := func(line string) string {
			var e struct{ Row, Key string }
			must.Do(t, json.Unmarshal([]byte(line), &e))
			return e.Row + e.Key
		}
		from, to := row(lines[len(lines)/3]), row(lines[2*len(lines)/3])
		var want strings.Builder
		within := false
		for _, line := range lines {
			if row(line) == from {
				within = true
			}
			if row(line) == to {
				break
			}
			if within {
				want.WriteString(line)
			}
		}
		same(t, "between "+from+" and "+to, g.run(t, "dump", "--from", from, "--to", to), want.String())
		same(t, "the first two", g.run(t, "dump", "--limit", "2"), lines[0]+lines[1])
		same(t, "nothing", g.run(t, "dump", "--from", to, "--to", from), "")
	})
}

// questions writes the keys of answers to a file and returns its name.
func questions(t *testing.T, answers string, key func(answer map[string]json.RawMessage) string) string {
	var keys strings.Builder
	for line := range strings.Lines(answers) {
		var answer map[string]json.RawMessage
		must.Do(t, json.Unmarshal([]byte(line), &answer))
		keys.WriteString(key(answer) + "\n")
	}
	name := filepath.Join(t.TempDir(), "keys")
	put(t, name, keys.String())
	return name
}

func TestHFileSeekAnswersAsTheRealReaders(t *testing.T) {
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		if g.Seeks == "" {
			return
		}
		answers := g.text(t, g.Seeks)
		keys := questions(t, answers, func(answer map[string]json.RawMessage) string {
			if g.view == "hudi" {
				return `{"key":` + string(answer["key"]) + "}"
			}
			return string(answer["key"])
		})
		if g.Name == "hudi/hudi-bigblock-none" { // Hudi itself loses the last record
			answers = strings.Replace(answers, `{"key":"k004599","seek_to":1,"at":"k004598","value":"v8"}`,
				`{"key":"k004599","seek_to":0,"at":"k004599","value":"v9"}`, 1)
		}
		same(t, "seek", g.run(t, "seek", keys), answers)
	})
}

func TestHFileProbeAnswersAsTheRealReaders(t *testing.T) {
	probed := 0
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		if g.Probes == "" {
			return
		}
		probed++
		answers := g.text(t, g.Probes)
		keys := questions(t, answers, func(answer map[string]json.RawMessage) string {
			var fields []string
			for _, name := range []string{"row", "qualifier", "key"} {
				if value, ok := answer[name]; ok {
					fields = append(fields, `"`+name+`":`+string(value))
				}
			}
			return "{" + strings.Join(fields, ",") + "}"
		})
		same(t, "probe", g.run(t, "probe", keys), answers)
	})
	if probed == 0 {
		t.Error("no file has a Bloom filter: this test sees nothing")
	}
}

func TestHFileInfoPrintsGoldenListings(t *testing.T) {
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		if g.Info != "" {
			got, want := succeed(t, "hfile", "info", g.path(), "--view", "hbase"), g.text(t, g.Info)
			if g.Meta != nil { // HBase misses meta blocks whose index is not sorted
				got, want = withoutMeta(got), withoutMeta(want)
			}
			same(t, "info in HBase's view", got, want)
		}
		if g.HudiInfo != "" {
			same(t, "info in Hudi's view",
				succeed(t, "hfile", "info", g.path(), "--view", "hudi"), g.text(t, g.HudiInfo))
		}
		for _, m := range g.Meta {
			if info := g.run(t, "info"); !strings.Contains(info, `"name":"`+m.Name+`"`) ||
				!strings.Contains(info, `"sha256":"`+m.SHA256+`"`) {
				t.Errorf("no meta block %s with SHA-256 %s", m.Name, m.SHA256)
			}
		}
		for _, form := range []string{"json", "csv", "table"} {
			g.run(t, "info", "--format", form)
		}
	})
}

func withoutMeta(info string) string {
	var b strings.Builder
	for line := range strings.Lines(info) {
		if !strings.HasPrefix(line, `{"section":"meta",`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestHFileLZOIsUnsupported(t *testing.T) {
	file := filepath.Join(corpustest.Dir(t), "golden", "hfile", "hbase", "groups-lzo.hfile")
	for _, args := range hfileVerbs(t, file) {
		damaged(t, file, args...)
	}
}

// hfileVerbs returns the verbs that read an HFile, each with its arguments.
func hfileVerbs(t *testing.T, file string) [][]string {
	keys := filepath.Join(t.TempDir(), "keys")
	put(t, keys, `{"row":"key00100"}`+"\n")
	return [][]string{{"hfile", "verify", file}, {"hfile", "dump", file, "--view", "hbase"},
		{"hfile", "probe", file, keys, "--view", "hbase"},
		{"hfile", "info", file}, {"hfile", "seek", file, keys, "--view", "hbase"}}
}

// Every malformed file is damage to verify, to info, and to the verb of the stage at which the
// manifest wants the error.
func TestMalformedHFilesAreDamage(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile", "malformed")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct{ Name, Trigger string }
		must.Do(t, json.Unmarshal([]byte(line), &m))
		t.Run(m.Name, func(t *testing.T) {
			file := filepath.Join(dir, m.Name)
			verbs := hfileVerbs(t, file)
			stages := map[string][]int{"verify": {0, 3}, "scan": {0, 1, 3}, "probe": {0, 2, 3}, "open": {0, 1, 2, 3, 4}}
			for _, i := range stages[m.Trigger] {
				damaged(t, file, verbs[i]...)
			}
		})
	}
}

// What write makes of the entries of a file has these entries, whatever its form.
func TestHFileWriteKeepsGoldenEntries(t *testing.T) {
	eachGoldenHFile(t, func(t *testing.T, g *goldenHFile) {
		out := filepath.Join(t.TempDir(), "out.hfile")
		args := []string{"hfile", "write", "--like", g.view, "--entries", filepath.Join(g.dir, g.Values), out}
		if g.view == "hbase" {
			args = append(args, "--codec", g.Codec, "--encoding", g.Encoding, "--bloom", "ROWCOL", "--block-size",
				"1000", "--index-block-size", "300")
		} else {
			args = append(args, "--codec", strings.TrimSuffix(g.Codec, "IP"),
				"--bytes-per-checksum", strconv.Itoa(64+len(g.Name)))
		}
		must.Equal(t, succeed(t, args...), "")
		same(t, "dump of the output", succeed(t, "hfile", "dump", out, "--view", g.view), g.text(t, g.Values))
		must.Equal(t, succeed(t, "hfile", "verify", out), "ok\n")
	})
}
