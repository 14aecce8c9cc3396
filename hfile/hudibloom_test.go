package hfile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// Each line of the file has the arguments of a filter of Hudi 1.2.0 (type, keys, error rate, most
// keys), the number of keys "kéy-0", "kéy-1", … that were added, and its text.
func TestHudiBloomGrowsLikeHudi(t *testing.T) {
	lines := must.Get(os.ReadFile("testdata/hudi-bloom.txt"))(t)
	n := 0
	for line := range strings.Lines(string(lines)) {
		var (
			o              HudiBloomOptions
			typeCode, want string
			added          int
		)
		must.Get(fmt.Sscan(line, &typeCode, &o.Keys, &o.ErrorRate, &o.MaxKeys, &added, &want))(t)
		o.Simple = typeCode == hudiBloomSimple
		f := must.Get(NewHudiBloom(o))(t)
		for i := range added {
			f.Add(fmt.Appendf(nil, "kéy-%d", i))
		}
		text, _ := f.MarshalText()
		must.Equal(t, string(text), want, line)
		f = must.Get(ParseHudiBloom(typeCode, text))(t)
		for i := range added {
			must.Equal(t, f.MayContain(fmt.Appendf(nil, "kéy-%d", i)), true, line, i)
		}
		n++
	}
	if n < 36 {
		t.Errorf("only %d filters", n)
	}
}

// Hudi 1.2.0 stores a filter as text. The hash is of its text for the keys "k0" to "k199999".
func TestHudiBloomWithDefaultsMatchesHudi(t *testing.T) {
	f := must.Get(NewHudiBloom(HudiBloomOptions{}))(t)
	for i := range 200000 {
		f.Add(fmt.Appendf(nil, "k%d", i))
	}
	text, _ := f.MarshalText()
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); len(text) != 862724 ||
		sum != "713d2c008706a8b38106ea54e0b9ef796211f414209ca7e6e8dd3607528f13a0" {
		t.Errorf("%d bytes with SHA-256 %s", len(text), sum)
	}
}

// A filter that was read has no limit for its keys; Hudi then adds no further row.
func TestHudiBloomAddsToAFilterThatWasRead(t *testing.T) {
	f := must.Get(NewHudiBloom(HudiBloomOptions{Keys: 3, ErrorRate: 0.1, MaxKeys: 9}))(t)
	for i := range 4 {
		f.Add(fmt.Appendf(nil, "a%d", i))
	}
	text, _ := f.MarshalText()
	f = must.Get(ParseHudiBloom(hudiBloomDynamic, text))(t)
	for i := range 9 {
		f.Add(fmt.Appendf(nil, "b%d", i))
	}
	text, _ = f.MarshalText()
	must.Equal(t, string(text), "/////wAAAAQBAAAADwAAAAMAAAAKAAAAAv////8AAAAEAQAAAA//f/////8AAAAEAQAAAA/dXw==")
}

func TestHudiBloomReadsTheConstantOfHudisTests(t *testing.T) {
	const text = "/////wAAABQBAAABID797Rg6cC9QEnS/mT3C01cdQGaLYH2jbOCLtMA0RWppEH1HQg=="
	f := must.Get(ParseHudiBloom(hudiBloomSimple, []byte(text)))(t)
	if f.hashes != 20 || f.hash != Murmur || f.bits != 288 {
		t.Errorf("%d hashes of %v, %d bits", f.hashes, f.hash, f.bits)
	}
}

func TestHudiBloomRefusesMalformedText(t *testing.T) {
	filter := func(simple bool) []byte {
		f := must.Get(NewHudiBloom(HudiBloomOptions{Simple: simple, Keys: 2, ErrorRate: 0.1}))(t)
		for i := range byte(3) {
			f.Add([]byte{i})
		}
		return f.b
	}
	simple, dynamic := filter(true), filter(false)
	set := func(b []byte, at int, v uint32) []byte {
		b = append([]byte(nil), b...)
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	rows := hudiBloomHeaderLen + hudiBloomDynamicLen
	for _, c := range []struct {
		name string
		code string
		b    []byte
		want error
	}{
		{"unknown type", "DYNAMIC_V1", dynamic, ErrUnsupported},
		{"no type", "", dynamic, ErrUnsupported},
		{"no bytes", hudiBloomSimple, nil, ErrCorrupt},
		{"version 0", hudiBloomSimple, set(simple, 0, 0), ErrUnsupported},
		{"version -2", hudiBloomSimple, set(simple, 0, math.MaxUint32-1), ErrUnsupported},
		{"no hashes", hudiBloomSimple, set(simple, 4, 0), ErrCorrupt},
		{"negative number of hashes", hudiBloomSimple, set(simple, 4, 1<<31), ErrCorrupt},
		{"2^31-1 hashes", hudiBloomSimple, set(simple, 4, math.MaxInt32), ErrCorrupt},
		{"no bits", hudiBloomSimple, set(simple, 9, 0), ErrCorrupt},
		{"negative number of bits", hudiBloomSimple, set(simple, 9, 1<<31), ErrCorrupt},
		{"2^31-1 bits", hudiBloomSimple, set(simple, 9, math.MaxInt32), ErrCorrupt},
		{"trailing byte", hudiBloomSimple, append(set(simple, 0, math.MaxUint32), 0), ErrCorrupt},
		{"type of the other", hudiBloomSimple, dynamic, ErrCorrupt},
		{"type of the other", hudiBloomDynamic, simple, ErrCorrupt},
		{"2^31-1 rows", hudiBloomDynamic, set(dynamic, hudiBloomHeaderLen+rowsField, math.MaxInt32), ErrCorrupt},
		{"no rows", hudiBloomDynamic, set(dynamic, hudiBloomHeaderLen+rowsField, 0), ErrCorrupt},
		{"one row too few", hudiBloomDynamic, set(dynamic, hudiBloomHeaderLen+rowsField, 1), ErrCorrupt},
		{"no keys in a row", hudiBloomDynamic, set(dynamic, hudiBloomHeaderLen+keysPerRowField, 0), ErrCorrupt},
		{"negative number of keys", hudiBloomDynamic, set(dynamic, hudiBloomHeaderLen+keysField, 1<<31), ErrCorrupt},
		{"row with another number of hashes", hudiBloomDynamic, set(dynamic, rows+4, 5), ErrCorrupt},
		{"row with more bits", hudiBloomDynamic, set(dynamic, rows+9, math.MaxInt32), ErrCorrupt},
	} {
		must.Fail(t, must.Err(ParseHudiBloom(c.code, []byte(base64.StdEncoding.EncodeToString(c.b)))),
			c.want, c.code, c.name)
	}
	for code, b := range map[string][]byte{hudiBloomSimple: simple, hudiBloomDynamic: dynamic} {
		for n := range b {
			if _, err := ParseHudiBloom(code,
				[]byte(base64.StdEncoding.EncodeToString(b[:n]))); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, the first %d of %d bytes: %v", code, n, len(b), err)
			}
		}
		text := base64.StdEncoding.EncodeToString(b)
		for _, bad := range []string{text[1:], "!" + text[1:], text + "\n", text[:4] + "\r\n" + text[4:]} {
			must.Fail(t, must.Err(ParseHudiBloom(code, []byte(bad))), ErrCorrupt, code, bad)
		}
	}
}

func TestHudiBloomRefusesOptions(t *testing.T) {
	for _, o := range []HudiBloomOptions{
		{Keys: -1}, {Keys: math.MaxInt32 + 1}, {MaxKeys: -1}, {Keys: math.MaxInt32}, {ErrorRate: 1}, {ErrorRate: -0.1},
		{ErrorRate: math.NaN()}, {ErrorRate: math.Inf(1)},
	} {
		must.Refuse(t, must.Err(NewHudiBloom(o)), o)
	}
	f := must.Get(NewHudiBloom(HudiBloomOptions{Keys: 1, ErrorRate: math.SmallestNonzeroFloat64}))(t)
	text, _ := f.MarshalText()
	must.Get(ParseHudiBloom(f.TypeCode(), text))(t)
}

// Hudi's reader finds our filters in our files and gives the same answers.
func TestHudiReadsOurBloomFilters(t *testing.T) {
	_, program := corpustest.NeedHFileReaders(t)
	j := newJudge(t, program)
	for i, o := range []HudiBloomOptions{{Simple: true, Keys: 300, ErrorRate: 0.1},
		{Keys: 50, ErrorRate: 0.05, MaxKeys: 250}} {
		f := must.Get(NewHudiBloom(o))(t)
		sink := &block.Memory{}
		w := must.Get(NewWriter(sink, WriterOptions{Like: Hudi, Codec: []Codec{None, GZ}[i], CreationTime: at}))(t)
		for k := range 300 {
			key := fmt.Appendf(nil, "ключ-%03d", k)
			f.Add(key)
			must.Do(t, w.AppendKeyValue(key, nil))
		}
		must.Do(t, w.AddHudiBloom(f))
		must.Do(t, w.Finish())
		var keys strings.Builder
		for k := range 3000 {
			fmt.Fprintf(&keys, "{\"key\":\"ключ-%03d\"}\n", k)
		}
		n, yes := 0, 0
		exit, message := j.ask(func(text []byte) {
			var answer struct{ Present bool }
			must.Do(t, json.Unmarshal(text, &answer))
			must.Equal(t, answer.Present, f.MayContain(fmt.Appendf(nil, "ключ-%03d", n)), f.TypeCode(), n)
			if n++; answer.Present {
				yes++
			}
		}, j.write("f.hfile", sink.Bytes), "--reader", "hudi", "--bloom", j.write("keys.jsonl", []byte(keys.String())))
		if exit != 0 || n != 3000 || yes < 300 || yes > 1500 {
			t.Errorf("%s: %d answers, %d true, exit %d: %s", f.TypeCode(), n, yes, exit, message)
		}
	}
}
