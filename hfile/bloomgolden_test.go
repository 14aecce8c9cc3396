package hfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// bloomFile is a line of the golden manifest: of a file with Bloom filters.
type bloomFile struct {
	goldenFile
	Kind       string `json:"bloom"`
	Hash       string `json:"bloom_hash"`
	BlockBytes int    `json:"bloom_block_size"`
	Prefix     int    `json:"prefix_length"`
	Probes     string `json:"probes"`
	True       int    `json:"probes_true"`
}

// bloomFiles calls f in a subtest for each golden file with Bloom filters.
func bloomFiles(t *testing.T, f func(t *testing.T, g bloomFile, r *Reader)) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile")
	n := 0
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var g bloomFile
		must.Do(t, json.Unmarshal([]byte(line), &g))
		if g.Probes == "" {
			continue
		}
		n++
		g.dir = filepath.Join(dir, filepath.Dir(g.Name))
		t.Run(g.Name, func(t *testing.T) {
			r := must.Get(g.open(t))(t)
			f(t, g, r)
		})
	}
	if n < 33 {
		t.Errorf("only %d golden files have Bloom filters", n)
	}
}

func (g bloomFile) path(name string) string { return filepath.Join(g.dir, filepath.Base(name)) }

func (g bloomFile) kind() BloomKind {
	for k := range BloomRowPrefix + 1 {
		if k.String() == g.Kind {
			return k
		}
	}
	return BloomNone
}

func (g bloomFile) hash() BloomHash {
	for h := range Murmur3 + 1 {
		if h.String() == g.Hash {
			return h
		}
	}
	return Murmur
}

// corpusBytes returns the bytes of a string of the corpus.
func corpusBytes(t *testing.T, s string) []byte {
	if !strings.HasPrefix(s, "0x") {
		return []byte(s)
	}
	return must.Get(hex.DecodeString(s[2:]))(t)
}

// The chunks of each filter equal HBase's chunks, and its metadata equals HBase's, given HBase's
// offsets of the chunks.
func TestBloomBuilderMakesHBaseBytes(t *testing.T) {
	compared := 0
	bloomFiles(t, func(t *testing.T, g bloomFile, r *Reader) {
		if r.Hudi() {
			return
		}
		general := must.Get(newBloomBuilder(g.kind(), g.hash(), g.BlockBytes, g.Prefix))(t)
		deletes := must.Get(newBloomBuilder(BloomRow, g.hash(), g.BlockBytes, 0))(t)
		chunks := map[*bloomBuilder][]bloomChunk{}
		take := func(b *bloomBuilder, closing bool) {
			for b.ready(closing) {
				payload := bytes.Clone(b.takeChunk())
				chunks[b] = append(chunks[b], bloomChunk{bits: payload, first: b.taken.first})
				b.chunkWritten(0, 0)
			}
		}
		for _, line := range corpustest.Lines(t, g.path(g.Values)) {
			var c struct{ Row, Qualifier, Type string }
			must.Do(t, json.Unmarshal([]byte(line), &c))
			k := Key{Row: corpusBytes(t, c.Row), Qualifier: corpusBytes(t, c.Qualifier)}
			if general.add(k); c.Type == DeleteFamily.String() || c.Type == DeleteFamilyVersion.String() {
				deletes.add(k)
			}
			take(general, false)
		}
		for magic, b := range map[string]*bloomBuilder{magicBloomMeta: general, magicDeleteFamily: deletes} {
			take(b, true)
			i := slices.IndexFunc(r.blooms, func(b *loadedBlock) bool { return b.header.magic == magic })
			if i < 0 {
				if b.meta() != nil {
					t.Errorf("%s: HBase has no such block", magic)
				}
				continue
			}
			compared++
			f := must.Get(r.filter(new(atomic.Pointer[BloomFilter]), magic))(t)
			must.Equal(t, len(chunks[b]), len(f.chunks), magic)
			b.index, b.chunks = nil, 0
			for i, e := range f.chunks {
				block := must.Get(r.readBlock(e.offset, e.size, magicBloomChunk))(t)
				if b.taken = chunks[b][i]; !bytes.Equal(b.taken.bits, block.payload) {
					t.Errorf("%s: chunk %d of %d bytes differs from HBase's %d", magic, i,
						len(b.taken.bits), len(block.payload))
				}
				b.chunkWritten(e.offset, e.size)
			}
			must.Equal(t, b.meta(), r.blooms[i].payload, magic)
			last, _ := r.InfoValue(infoLastBloomKey)
			if magic == magicBloomMeta && !bytes.Equal(b.lastKey(), last) {
				t.Errorf("last key %q, want %q", b.lastKey(), last)
			}
		}
	})
	if compared < 22 {
		t.Errorf("only %d filters were compared", compared)
	}
}

func TestBloomFiltersAnswerLikeHBaseAndHudi(t *testing.T) {
	probes := 0
	bloomFiles(t, func(t *testing.T, g bloomFile, r *Reader) {
		general := must.Get(r.Bloom())(t)
		deletes := must.Get(r.DeleteFamilyBloom())(t)
		hudi := must.Get(r.HudiBloom())(t)
		for _, f := range []*BloomFilter{general, deletes} {
			if f == nil {
				continue
			}
			must.Do(t, f.Check())
		}
		yes := 0
		ask := func(f *BloomFilter, row, qualifier []byte) *bool {
			if f == nil {
				return nil
			}
			ok := must.Get(f.MayContain(row, qualifier))(t)
			return &ok
		}
		for _, line := range corpustest.Lines(t, g.path(g.Probes)) {
			probes++
			var p struct {
				Row, Qualifier, Key string
				General             *bool
				DeleteFamily        *bool `json:"delete_family"`
				Present             *bool
			}
			must.Do(t, json.Unmarshal([]byte(line), &p))
			row, qualifier := corpusBytes(t, p.Row), corpusBytes(t, p.Qualifier)
			got, gotDeletes := ask(general, row, qualifier), ask(deletes, row, nil)
			var present *bool
			if hudi != nil {
				ok := hudi.MayContain(corpusBytes(t, p.Key))
				present = &ok
			}
			if !reflect.DeepEqual(got, p.General) || !reflect.DeepEqual(gotDeletes, p.DeleteFamily) ||
				!reflect.DeepEqual(present, p.Present) {
				t.Errorf("%s: different answer", line)
			}
			if got != nil && *got || present != nil && *present {
				yes++
			}
		}
		must.Equal(t, yes, g.True, "keys may be present")
	})
	if probes < 12752 {
		t.Errorf("only %d probes", probes)
	}
}

// Each file of the corpus whose defect a probe must find is refused before the first answer.
func TestDamagedBloomFiltersAreRefused(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile", "malformed")
	n := 0
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct {
			Name, Trigger string
			Kind          []string
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		if m.Trigger != "probe" {
			continue
		}
		n++
		t.Run(m.Name, func(t *testing.T) {
			r, err := Open(&block.Memory{Bytes: corpustest.Read(t, filepath.Join(dir, m.Name))}, ReaderOptions{})
			if err == nil {
				err = checkBlooms(r)
			}
			if !errors.Is(err, ErrCorrupt) &&
				!(errors.Is(err, ErrUnsupported) && slices.Contains(m.Kind, "NotSupported")) {
				t.Errorf("%v, want an error of kind %v", err, m.Kind)
			}
			if err != nil && !strings.Contains(err.Error(), "at byte ") {
				t.Errorf("%v: no place", err)
			}
		})
	}
	if n < 12 {
		t.Errorf("only %d files", n)
	}
}

// checkBlooms checks all Bloom filters of a file.
func checkBlooms(r *Reader) error {
	for _, filter := range []func() (*BloomFilter, error){r.Bloom, r.DeleteFamilyBloom} {
		f, err := filter()
		if err == nil && f != nil {
			err = f.Check()
		}
		if err != nil {
			return err
		}
	}
	_, err := r.HudiBloom()
	return err
}

// A verifier accepts every cell of its own file, and no other file's rows.
func TestBloomVerifierKnowsTheCells(t *testing.T) {
	bloomFiles(t, func(t *testing.T, g bloomFile, r *Reader) {
		f, err := r.Bloom()
		if f == nil || err != nil {
			return
		}
		v := newBloomVerifier(f)
		for _, line := range corpustest.Lines(t, g.path(g.Values)) {
			var c struct{ Row, Qualifier string }
			must.Do(t, json.Unmarshal([]byte(line), &c))
			must.Do(t, v.check(Key{Row: corpusBytes(t, c.Row), Qualifier: corpusBytes(t, c.Qualifier)}))
		}
		must.Fail(t, v.check(Key{Row: []byte("zzz-not-in-the-file")}), ErrCorrupt, "a row that is not in the filter")
	})
}

// The texts of Hudi's filters in the corpus are what the keys of their files give.
func TestHudiBloomMakesHudiBytes(t *testing.T) {
	compared := 0
	bloomFiles(t, func(t *testing.T, g bloomFile, r *Reader) {
		if !r.Hudi() {
			return
		}
		text, _ := must.Get2(r.Meta(hudiBloomMeta))(t)
		f := must.Get(NewHudiBloom(HudiBloomOptions{Simple: g.Kind == hudiBloomSimple, Keys: 500, ErrorRate: 0.01}))(t)
		for _, line := range corpustest.Lines(t, g.path(g.Values)) {
			var c struct{ Key string }
			must.Do(t, json.Unmarshal([]byte(line), &c))
			f.Add(corpusBytes(t, c.Key))
		}
		if got, _ := f.MarshalText(); !bytes.Equal(got, text) {
			t.Errorf("%s\nwant\n%s", got, text)
		}
		compared++
	})
	if compared < 12 {
		t.Errorf("only %d filters were compared", compared)
	}
}
