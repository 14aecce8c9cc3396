package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// damaged runs a command on a damaged file, which must exit with code 3 and print one line that
// names it.
func damaged(t *testing.T, file string, args ...string) {
	t.Helper()
	_, errs, code := command(strings.NewReader(""), args...)
	if code != exit.Damage || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, filepath.Base(file)) {
		t.Errorf("oribi %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
}

// cfileVerbs returns the verbs that read a column file, each with its arguments.
func cfileVerbs(file string) [][]string {
	return [][]string{{"cfile", "info", file}, {"cfile", "dump", file}, {"cfile", "dump", file, "--format", "csv"},
		{"cfile", "seek", file, "--", "1"}, {"cfile", "blocks", file}, {"cfile", "blocks", file, "--annotate"},
		{"cfile", "verify", file}, {"cfile", "advise", file}}
}

// Each verb reports any malformed file.
func TestMalformedFilesAreDamage(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "cfile", "malformed")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct {
			Name, What, Probe string
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		t.Run(m.Name, func(t *testing.T) {
			file := filepath.Join(dir, m.Name)
			switch filepath.Ext(m.Name) {
			case ".cfile":
				for _, args := range cfileVerbs(file) {
					damaged(t, file, args...)
				}
			case ".bloom":
				damaged(t, file, "cfile", "verify", file)
				damaged(t, file, "bloom", "info", file)
				damaged(t, file, "bloom", "probe", file, m.Probe)
			}
			if filepath.Ext(m.Name) != ".bloom" {
				damaged(t, file, "bloom", "info", file)
			}
			damaged(t, file, "delta", "dump", file)
		})
	}
}

// Every verb reports flipped bits and truncation of a file with checksums as damage. Package cfile
// tries every bit; here the verbs take turns.
func TestFlippedBitsAndCutsAreDamage(t *testing.T) {
	dir := t.TempDir()
	spec, values, whole, file := filepath.Join(dir, "spec"), filepath.Join(dir, "values"),
		filepath.Join(dir, "whole"), filepath.Join(dir, "file")
	put(t, spec, `{"type":"INT32","encoding":"BIT_SHUFFLE","validx":true}`)
	put(t, values, "1\n5\n9\n")
	succeed(t, "cfile", "write", "--spec", spec, "--values", values, "--zone-map", whole)
	data := read(t, whole)
	verbs := cfileVerbs(file)
	const step = 5 // coprime to the eight bits of a byte: each of them is flipped somewhere
	for i := 0; i*step < 8*len(data); i++ {
		bit := i * step
		flipped := []byte(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		put(t, file, string(flipped))
		if damaged(t, file, verbs[i%len(verbs)]...); t.Failed() {
			t.Fatalf("bit %d of byte %d", bit%8, bit/8)
		}
	}
	for n := range len(data) {
		put(t, file, data[:n])
		if damaged(t, file, verbs[n%len(verbs)]...); t.Failed() {
			t.Fatalf("cut to %d bytes", n)
		}
	}
}

func TestProbeMatchesKudu(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "cfile", "bloom")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct {
			Name, Probes string
			Blocks       int `json:"bloom_blocks"`
			Hashes       int `json:"num_hashes"`
			Bytes        int
			Checksums    bool
			Size         int
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		file := filepath.Join(dir, m.Name+".bloom")
		var keys, want strings.Builder
		first := []string{"bloom", "probe", file}
		for i, line := range corpustest.Lines(t, filepath.Join(dir, m.Probes)) {
			var p struct {
				Key     string
				Present bool
			}
			must.Do(t, json.Unmarshal([]byte(line), &p))
			fmt.Fprintln(&keys, p.Key)
			fmt.Fprintln(&want, p.Present)
			if i < 20 {
				first = append(first, p.Key)
			}
		}
		got, errs, code := command(strings.NewReader(keys.String()), "bloom", "probe", file, "-")
		must.Equal(t, code, 0, m.Name, errs)
		must.Equal(t, got, want.String(), m.Name, errs)
		if got := succeed(t, first...); !strings.HasPrefix(want.String(), got) || strings.Count(got, "\n") != 20 {
			t.Errorf("%s: keys on the command line give\n%s", m.Name, got)
		}
		info := fmt.Sprintf(`{"size":%d,"version":2,"checksums":%t,"bloom_blocks":%d,"bytes":%d,"num_hashes":%d,`,
			m.Size, m.Checksums, m.Blocks, m.Bytes, m.Hashes)
		if m.Blocks == 0 {
			info = fmt.Sprintf(`{"size":%d,"version":2,"checksums":%t,"bloom_blocks":0,"bytes":0,"num_hashes":0,`,
				m.Size, m.Checksums)
		}
		if got := succeed(t, "bloom", "info", file); !strings.HasPrefix(got, info) {
			t.Errorf("info %swant   %s", got, info)
		}
	}
}

func TestProbeReportsBadKeysOnStdin(t *testing.T) {
	file := filepath.Join(corpustest.Dir(t), "golden", "cfile", "bloom", "small-64.bloom")
	out, errs, code := command(strings.NewReader("\n00\nxy\n"), "bloom", "probe", file, "-")
	if code != exit.Failed || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "-:3: \"xy\" is not hex") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	exits(t, exit.Misused, "bloom", "probe", file, "0")
	exits(t, exit.Misused, "bloom", "probe", file)
}

func TestDeltaDumpPrintsChangesOfKuduFiles(t *testing.T) {
	test := func(t *testing.T, dir string) {
		for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
			var m struct {
				Name, Kind, Values string
				Columns            json.RawMessage
			}
			must.Do(t, json.Unmarshal([]byte(line), &m))
			want := string(corpustest.Read(t, filepath.Join(dir, m.Values)))
			// The name of the file does not say whether it contains undos.
			file := filepath.Join(t.TempDir(), "file")
			put(t, file, read(t, filepath.Join(dir, m.Name+".delta")))
			must.Equal(t, succeed(t, "delta", "dump", file, "--columns", string(m.Columns)), want, m.Name)
			for _, format := range []string{"csv", "table", "json"} {
				succeed(t, "delta", "dump", file, "--columns", string(m.Columns), "--format", format)
			}
			wrong := map[string]string{"REDO": "undo", "UNDO": "redo"}[m.Kind]
			damaged(t, file, "delta", "dump", file, "--type", wrong)
			succeed(t, "cfile", "verify", file)
		}
	}
	t.Run("from=testdata", func(t *testing.T) {
		test(t, filepath.Join("..", "..", "..", "..", "delta", "testdata", "golden"))
	})
	t.Run("from=corpus", func(t *testing.T) { test(t, filepath.Join(corpustest.Dir(t), "golden", "cfile", "delta")) })
}

// If no row has two changes, the file's name decides, or that all rows are deleted, as in the undo
// files of flushes.
func TestDeltaDumpDistinguishesUndosFromRedos(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		rows []uint32
		list []byte
		want string
	}{
		{"file", []uint32{0, 1, 2}, change.AppendDelete(nil), "UNDO"},
		{"redo-1", []uint32{0, 1, 2}, change.AppendDelete(nil), "REDO"},
		{"file", []uint32{0, 2}, change.AppendDelete(nil), "REDO"},
		{"undo-1", []uint32{0, 2}, change.AppendDelete(nil), "UNDO"},
		{"file", []uint32{0, 1}, change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 1, nil), "REDO"},
	} {
		var file block.Memory
		w := must.Get(delta.NewWriter(&file, false))(t)
		for _, row := range c.rows {
			must.Do(t, w.Append(change.Delta{Row: row, TS: 7, List: c.list}))
		}
		must.Get(w.Finish())(t)
		name := filepath.Join(dir, c.name)
		put(t, name, string(file.Bytes))
		must.Equal(t, strings.Count(succeed(t, "delta", "dump", name), `"type":"`+c.want+`"`),
			len(c.rows), c.name, c.rows, c.want)
	}
}

func TestDeltaDumpReportsWrongColumns(t *testing.T) {
	file := filepath.Join("..", "..", "..", "..", "delta", "testdata", "golden", "redo-basic.delta")
	must.Contain(t, succeed(t, "delta", "dump", file),
		`{"row":0,"ts":1,"type":"REDO","op":"UPDATE","cols":{"11":"0x05000000"}}`)
	for _, columns := range []string{`{}`, `[1]`, `[{"id":11}]`, `[{"type":"INT8"}]`,
		`[{"id":"11","type":"INT8"}]`, `[{"id":11,"type":"WORD"}]`,
		`[{"id":11,"type":"INT8"},{"id":11,"type":"INT8"}]`, `[`, `[{"id":11,"type":"INT8","nullable":1}]`} {
		must.Contain(t, exits(t, exit.Misused, "delta", "dump", file, "--columns", columns), "--columns")
	}
	damaged(t, file, "delta", "dump", file, "--columns", `[{"id":11,"type":"INT64"}]`)
	damaged(t, file, "delta", "dump", file, "--columns", `[{"id":12,"type":"STRING","nullable":false}]`)
}

// A failed write leaves no file; an existing file is not replaced.
func TestFailedWriteLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	spec, values, out := filepath.Join(dir, "spec"), filepath.Join(dir, "values"), filepath.Join(dir, "out")
	for _, c := range []struct {
		spec, values string
		code         int
		want         string
	}{
		{`{"type":"INT8"}`, "1\n128\n", exit.Failed, `values:2: "128" is out of range for int8`},
		{`{"type":"INT8"}`, "1\n\"1\"\n", exit.Failed, "values:2: want an integer, not a string"},
		{`{"type":"INT8"}`, "1\n2", 0, ""},
		{`{"type":"INT8"}`, "1\n\n2\n", exit.Failed, "values:2: "},
		{`{"type":"INT8"}`, "1 2\n", exit.Failed, "values:1: "},
		{`{"type":"INT8"}`, "null\n", exit.Failed, "values:1: null in a column that is not nullable"},
		{`{"type":"INT8","array":true}`, "[1]\nnull\n", exit.Failed, "values:2: null in a column that is not nullable"},
		{`{"type":"INT8","array":true}`, "[1]\n3\n", exit.Failed, "values:2: want an array, not a number"},
		{`{"type":"INT8","array":true}`, "[1,null,-129]\n", exit.Failed, "values:1: element 2: "},
		{`{"type":"INT8","array":true,"nullable":true}`, "[1,null]\n[]\nnull\n", 0, ""},
		{`{"type":"DATE"}`, "\"2026-01-01\"\n", exit.Failed, "values:1: want an integer"},
		{`{"type":"DECIMAL32"}`, "1.5\n", exit.Failed, "values:1: want an integer in plain digits"},
		{`{"type":"STRING"}`, "\"\xff\"\n", exit.Failed, "values:1: "},
		{`{"type":"BINARY"}`, "\"ab\"\n", exit.Failed, `values:1: want "0x…"`},
		{`{"type":"INT32","validx":true}`, "1\n1\n3\n2\n", exit.Failed,
			"values:4: the value is less than the previous one"},
		{`{"type":"INT32","validx":true,"append_batch":1}`, "1\n1\n3\n2\n", exit.Failed,
			"values:4: the value is less than the previous one"},
		{`{"type":"INT32","validx":true,"nullable":true}`, "1\n", exit.Misused, "spec: validx: the column is nullable"},
		{`{"type":"FLOAT","validx":true}`, "1\n", exit.Misused, "spec: validx: values of type FLOAT have no order"},
		{`{"type":"INT8","array":true,"validx":true}`, "", exit.Misused, "spec: validx: the column is one of arrays"},
		{`{"type":"INT32","posidx":false}`, "1\n", exit.Misused, "spec: posidx and validx are both false"},
		{`{"type":"STRING","encoding":"RLE"}`, "", exit.Misused, "spec: encoding: RLE does not fit STRING"},
		{`{"type":"WORD"}`, "", exit.Misused, `spec: type: unknown type "WORD"`},
		{`{"type":"INT8","compression":"LZO"}`, "", exit.Misused, `spec: compression: unknown compression "LZO"`},
		{`{"encoding":"RLE"}`, "", exit.Misused, `spec: "type" is missing`},
		{`{"type":"INT8","block_size":-1}`, "", exit.Misused, "spec: block_size: want an integer from 0"},
		{`{"type":"INT8","restart_interval":1.5}`, "", exit.Misused, "spec: restart_interval: want an integer from 0"},
		{`{"type":"INT8","append_batch":99999999999}`, "", exit.Misused, "spec: append_batch: want an integer from 0"},
		{`{"type":"INT8","nullable":1}`, "", exit.Misused, "spec: nullable: want true or false, not a number"},
		{`{"type":"INT8","metadata":[{"where":"header","key":"k","value_length":2000}]}`, "", exit.Misused,
			`spec: metadata: pair "k": want a "value"`},
		{`{"type":"INT8","metadata":[{"where":"there","key":"k","value":"0x"}]}`, "", exit.Misused,
			`spec: metadata: pair "k": "where" is`},
		{`{"type":"INT8"}{"type":"INT8"}`, "", exit.Misused, "spec: byte 16: not JSON: text after the value"},
		{`[]`, "", exit.Misused, "spec: want an object, not an array"},
	} {
		put(t, spec, c.spec)
		put(t, values, c.values)
		_, errs, code := command(nil, "cfile", "write", "--spec", spec, "--values", values, out)
		_, err := os.Stat(out)
		if code != c.code || !strings.Contains(errs, c.want) || (err == nil) != (c.code == 0) ||
			c.code != 0 && strings.Count(errs, "\n") != 1 {
			t.Errorf("%s, %q: exit code %d, file left: %v: %s", c.spec, c.values, code, err == nil, errs)
		}
		os.Remove(out)
	}
	put(t, out, "mine")
	put(t, spec, `{"type":"INT8"}`)
	if _, errs, code := command(nil, "cfile", "write", "--spec", spec, "--values", values, out); code != exit.Failed ||
		read(t, out) != "mine" {
		t.Errorf("exit code %d, then the file is %q: %s", code, read(t, out), errs)
	}
}

func TestMissingFilesAreNotDamage(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{dir, filepath.Join(dir, "none"), filepath.Join(dir, "none.gz")} {
		for _, args := range append(cfileVerbs(file), []string{"bloom", "info", file},
			[]string{"bloom", "probe", file, "00"}, []string{"delta", "dump", file}) {
			if _, errs, code := command(nil, args...); code != exit.Failed || strings.Count(errs, "\n") != 1 ||
				!strings.Contains(errs, file) {
				t.Errorf("oribi %s: exit code %d: %s", strings.Join(args, " "), code, errs)
			}
		}
	}
}

// Files may come from stdin, and may be packed.
func TestFilesFromStreams(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "cfile", "testdata", "golden")
	file := filepath.Join(dir, "decimal32-bshuf-lz4-v.cfile")
	want := succeed(t, "cfile", "dump", file)
	got, errs, code := command(strings.NewReader(read(t, file)), "cfile", "dump", "-")
	must.Equal(t, code, 0, errs)
	must.Equal(t, got, want, errs)
	packed := filepath.Join(t.TempDir(), "x.cfile.gz")
	put(t, packed, pack(t, read(t, file)))
	must.Equal(t, succeed(t, "cfile", "dump", packed), want, "unpacked it prints\n")
	whole := read(t, packed)
	for _, text := range []string{whole[:len(whole)-3], "plain", whole[:len(whole)/2] + "xxxxxxxxxxxxxxxxxxxx"} {
		put(t, packed, text)
		damaged(t, packed, "cfile", "dump", packed)
	}
}

func TestSeekRefusesInvalidValues(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "cfile", "testdata", "golden")
	sorted, unsorted := filepath.Join(dir, "decimal32-bshuf-lz4-v.cfile"),
		filepath.Join(dir, "bool-rle-lz4-null-p.cfile")
	for _, value := range []string{"x", "1.5", "99999999999", ""} {
		exits(t, exit.Misused, "cfile", "seek", sorted, "--", value)
	}
	must.Contain(t, exits(t, exit.Failed, "cfile", "seek", unsorted, "--", "true"), "no value index")
}

// Each valid encoding is tried with each codec, and the file's own is marked.
func TestAdviseTriesEverything(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "cfile", "testdata", "golden")
	for file, want := range map[string]int{"decimal32-bshuf-lz4-v": 15, "bool-rle-lz4-null-p": 10,
		"binary-prefix-zlib-null-p": 15,
		"double-bshuf-lz4-null-p":   10, "decimal128-plain-lz4-p": 10,
		"arrays/spec-example": 15, "empty-int32-plain": 15} {
		out := succeed(t, "cfile", "advise", filepath.Join(dir, file+".cfile"))
		must.Equal(t, strings.Count(out, "\n"), want, file, out)
		must.Equal(t, strings.Count(out, `"current":true`), 1, file, out)
		last := int64(0)
		for line := range strings.Lines(out) {
			var trial struct{ Size int64 }
			must.Do(t, json.Unmarshal([]byte(line), &trial))
			if trial.Size < last || trial.Size == 0 {
				t.Errorf("%s: %d bytes after %d", file, trial.Size, last)
			}
			last = trial.Size
		}
	}
}
