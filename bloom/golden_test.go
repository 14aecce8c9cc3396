package bloom

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenFile is a line of the corpus manifest.
type goldenFile struct {
	Name          string  `json:"name"`
	NumKeys       int     `json:"num_keys"`
	SizedBy       string  `json:"sized_by"`
	Bytes         int     `json:"bytes"`
	Rate          float64 `json:"fp_rate"`
	KeysPerBlock  int     `json:"keys_per_block"`
	NumHashes     int     `json:"num_hashes"`
	Checksums     bool    `json:"checksums"`
	Blocks        int     `json:"bloom_blocks"`
	NumProbes     int     `json:"num_probes"`
	ProbesPresent int     `json:"probes_present"`
}

func (g goldenFile) options() Options {
	o := Options{FalsePositiveRate: g.Rate, NoChecksums: !g.Checksums}
	if g.SizedBy == "count" {
		o.KeysPerBlock = g.KeysPerBlock
	} else {
		o.BlockBytes = g.Bytes
	}
	return o
}

// goldenFiles returns the directory of the bloom files in the corpus, and their manifest.
func goldenFiles(t *testing.T) (dir string, files []goldenFile) {
	dir = filepath.Join(corpustest.Dir(t), "golden", "cfile", "bloom")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var g goldenFile
		must.Do(t, json.Unmarshal([]byte(line), &g))
		files = append(files, g)
	}
	if len(files) == 0 {
		t.Fatal("the manifest is empty")
	}
	return dir, files
}

func TestWriterMatchesKuduBytes(t *testing.T) {
	dir, files := goldenFiles(t)
	for _, g := range files {
		t.Run(g.Name, func(t *testing.T) {
			s, err := g.options().Sizing()
			if want := (Sizing{g.Bytes, g.KeysPerBlock, g.NumHashes}); s != want || err != nil {
				t.Errorf("sizing %+v (%v), want %+v", s, err, want)
			}
			var keys [][]byte
			for _, line := range corpustest.Lines(t, filepath.Join(dir, g.Name+".keys.txt")) {
				keys = append(keys, must.Hex(t, line))
			}
			must.Equal(t, len(keys), g.NumKeys)
			want := corpustest.Read(t, filepath.Join(dir, g.Name+".bloom"))
			must.Equal(t, write(t, g.options(), keys), want, "other bytes than Kudu's")
		})
	}
}

func TestReaderMatchesKuduAnswers(t *testing.T) {
	dir, files := goldenFiles(t)
	for _, g := range files {
		t.Run(g.Name, func(t *testing.T) {
			r := open(t, corpustest.Read(t, filepath.Join(dir, g.Name+".bloom")), nil)
			must.Do(t, r.Verify())
			must.Equal(t, len(must.Get(r.file.BlockPointers())(t)), g.Blocks)
			asked, found := 0, 0
			for _, line := range corpustest.Lines(t, filepath.Join(dir, g.Name+".probes.jsonl")) {
				var probe struct {
					Key     string `json:"key"`
					Present bool   `json:"present"`
				}
				must.Do(t, json.Unmarshal([]byte(line), &probe))
				must.Equal(t, ask(t, r, must.Hex(t, probe.Key)), probe.Present, probe.Key)
				asked++
				if probe.Present {
					found++
				}
			}
			must.Equal(t, asked, g.NumProbes)
			must.Equal(t, found, g.ProbesPresent, "probes found")
		})
	}
}

func TestMalformedFilesAreRefused(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "cfile", "malformed")
	seen := 0
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct{ Name, What, Trigger, Probe string }
		must.Do(t, json.Unmarshal([]byte(line), &m))
		if m.Trigger != "probe" {
			continue
		}
		seen++
		data := must.Get(os.ReadFile(filepath.Join(dir, m.Name)))(t)
		key := must.Get(hex.DecodeString(m.Probe))(t)
		r, err := Open(&block.Memory{Bytes: data}, cfile.ReaderOptions{})
		if err == nil {
			_, err = r.MayContain(MakeProbe(key))
		}
		must.Fail(t, err, ErrCorrupt, m.Name, m.What)
	}
	if seen == 0 {
		t.Error("no malformed bloom file in the manifest")
	}
}
