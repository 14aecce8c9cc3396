package hfile

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf16"

	"google.golang.org/protobuf/encoding/protowire"
)

// Minor version in the trailer.
const (
	hbaseMinor = 3
	hudiMinor  = 0
)

// infoWriter collects the entries of file info.
type infoWriter struct {
	entries []infoPair
	keys    map[string]bool
	bytes   int // of all keys and values
}

type infoPair struct {
	key   string
	value []byte
}

// add adds an entry and reports whether the key is new; if not, nothing changes.
func (f *infoWriter) add(key string, value []byte) bool {
	if f.keys[key] {
		return false
	}
	if f.keys == nil {
		f.keys = make(map[string]bool)
	}
	f.keys[key] = true
	f.bytes += len(key) + len(value)
	f.entries = append(f.entries, infoPair{key, value})
	return true
}

func (f *infoWriter) addInt32(key string, v int32) {
	f.add(key, binary.BigEndian.AppendUint32(nil, uint32(v)))
}

func (f *infoWriter) addInt64(key string, v int64) {
	f.add(key, binary.BigEndian.AppendUint64(nil, uint64(v)))
}

func (f *infoWriter) addBool(key string, v bool) {
	b := byte(0)
	if v {
		b = 0xff
	}
	f.add(key, []byte{b})
}

// payload returns the payload of the block, with the entries in the order that the system has.
func (f *infoWriter) payload(like System) []byte {
	if like == Hudi120 || like == Hudi111 {
		f.entries = hashMapOrder(f.entries, func(p infoPair) string { return p.key })
	} else {
		slices.SortStableFunc(f.entries, func(a, b infoPair) int { return strings.Compare(a.key, b.key) })
	}
	var message, pair []byte
	for _, e := range f.entries {
		pair = protowire.AppendTag(pair[:0], pairKeyField, protowire.BytesType)
		pair = protowire.AppendString(pair, e.key)
		pair = protowire.AppendTag(pair, pairValField, protowire.BytesType)
		pair = protowire.AppendBytes(pair, e.value)
		message = protowire.AppendTag(message, infoPairField, protowire.BytesType)
		message = protowire.AppendBytes(message, pair)
	}
	return protowire.AppendBytes([]byte(infoMagic), message)
}

// hashMapOrder returns entries, of which keys differ, in the order in which a HashMap of Java that
// they were put into one after the other returns them.
func hashMapOrder[E any](entries []E, key func(E) string) []E {
	buckets := 16
	for 4*len(entries) > 3*buckets {
		buckets *= 2
	}
	bucket := func(e E) int {
		var h uint32
		for _, unit := range utf16.Encode([]rune(key(e))) {
			h = 31*h + uint32(unit)
		}
		return int(h^h>>16) & (buckets - 1)
	}
	slices.SortStableFunc(entries, func(a, b E) int { return cmp.Compare(bucket(a), bucket(b)) })
	return entries
}

// tracker collects what file info says about the entries.
type tracker struct {
	entries              int64
	keyBytes, rowBytes   int64
	valueBytes           int64
	maxSequence          int64
	maxTags              int
	biggestLen           int64
	biggestKey           []byte
	deleteFamilies       int64
	earliestPut          int64
	minTime, maxTime     int64
	firstBlock, lastData int64 // offsets, -1 without a data block
	dataBlocks           int64
	dataBytes            int64 // payloads of data blocks before compression
}

func newTracker() tracker {
	return tracker{earliestPut: math.MaxInt64, minTime: math.MaxInt64, maxTime: -1, firstBlock: -1, lastData: -1}
}

// add counts a cell with the given key.
func (t *tracker) add(c *Cell, key []byte) {
	t.entries++
	t.keyBytes += int64(len(key))
	t.rowBytes += int64(len(c.Row))
	t.valueBytes += int64(len(c.Value))
	t.maxSequence = max(t.maxSequence, c.Sequence)
	t.maxTags = max(t.maxTags, len(c.Tags))
	size := int64(4 + 8 + len(key) + len(c.Value))
	if len(c.Tags) > 0 {
		size += int64(2 + len(c.Tags))
	}
	if size > t.biggestLen {
		t.biggestLen = size
		t.biggestKey = append(t.biggestKey[:0], key...)
	}
	t.minTime, t.maxTime = min(t.minTime, c.Timestamp), max(t.maxTime, c.Timestamp)
	switch c.Type {
	case Put:
		t.earliestPut = min(t.earliestPut, c.Timestamp)
	case DeleteFamilyVersion:
		t.deleteFamilies++
	case DeleteFamily:
		t.deleteFamilies++
		t.minTime = 0 // it deletes all that is older
	case DeleteColumn:
		t.minTime = 0
	}
}

func (t *tracker) averages() (key, row, value int32) {
	if t.entries == 0 {
		return 0, 0, 0
	}
	return int32(t.keyBytes / t.entries), int32(t.rowBytes / t.entries), int32(t.valueBytes / t.entries)
}

// fileInfo adds the entries that describe the file.
func (w *Writer) fileInfo() {
	f, t := &w.info, &w.track
	key, row, value := t.averages()
	release := w.o.Like == Hudi120 || w.o.Like == Hudi111
	switch {
	case release && t.entries == 0:
		f.add(infoLastKey, nil)
	case release:
		f.add(infoLastKey, w.last[:keyRowLen+len(keyRow(w.last))])
	case t.entries > 0:
		f.add(infoLastKey, w.last)
	}
	if release {
		key = row
	}
	f.addInt32(infoAvgKeyLen, key)
	f.addInt32(infoAvgValueLen, value)
	f.addInt64(infoCreateTime, w.o.CreationTime.UnixMilli())
	if !w.o.OmitSequences {
		f.addInt64(infoMaxMemstoreTS, t.maxSequence)
		f.addInt32(infoKeyValueVersion, 1)
	}
	if w.o.Like != HBase {
		return
	}
	if t.entries > 0 {
		f.add(infoBiggestCellKey, t.biggestKey)
		f.addInt64(infoBiggestCellLen, t.biggestLen)
	}
	if w.o.Tags {
		f.addInt32(infoMaxTagsLen, int32(t.maxTags))
		f.addBool(infoTagsCompressed, w.o.CompressTags && w.o.Encoding != EncodingNone)
	}
	if w.o.Encoding != EncodingNone {
		f.add(infoDataEncoding, []byte(w.o.Encoding.String()))
	}
	if !w.o.StoreFile {
		return
	}
	f.addInt64(infoDeleteFamilyCount, t.deleteFamilies)
	f.addInt64(infoEarliestPut, t.earliestPut)
	times := binary.BigEndian.AppendUint64(nil, uint64(t.minTime))
	f.add(infoTimeRange, binary.BigEndian.AppendUint64(times, uint64(t.maxTime)))
	if w.bloom != nil && t.entries > 0 {
		f.add(infoBloomKind, []byte(w.o.Bloom.String()))
		f.add(infoLastBloomKey, w.bloom.lastKey())
		if w.o.Bloom == BloomRowPrefix {
			f.addInt32(infoBloomParam, int32(w.o.PrefixBytes))
		}
	}
}

// reserved reports whether the writer decides about an entry of file info.
func (o *WriterOptions) reserved(key string) bool {
	switch key {
	case infoKeyValueVersion, infoMaxMemstoreTS, infoDataEncoding, infoIndexEncoding,
		infoBloomKind, infoBloomParam, infoLastBloomKey:
		return true
	case infoDeleteFamilyCount, infoEarliestPut, infoTimeRange:
		return o.StoreFile
	}
	return false
}

// trailer returns the trailer.
func (w *Writer) trailer(fileInfo, loadOnOpen int64) []byte {
	t := &w.track
	size, minor := trailerLen3, hbaseMinor
	if w.o.MajorVersion == 2 {
		size = trailerLen2
	}
	var m []byte
	field := func(number protowire.Number, v int64) {
		m = protowire.AppendTag(m, number, protowire.VarintType)
		m = protowire.AppendVarint(m, uint64(v))
	}
	field(trailerInfoOff, fileInfo)
	field(trailerLoadOff, loadOnOpen)
	last := t.lastData
	if w.o.Like == HBase {
		field(trailerIndexLen, w.index.bytes)
		field(trailerBytes, w.unpackedTotal()+int64(size))
	} else {
		minor = hudiMinor
		field(trailerIndexLen, t.dataBytes) // differs from the field's name
		last = max(last, 0)
	}
	field(trailerIndexN, int64(len(w.index.root.entries)))
	field(trailerMetaN, int64(len(w.meta)))
	field(trailerCells, t.entries)
	field(trailerLevels, int64(w.index.levels))
	field(trailerFirst, t.firstBlock)
	field(trailerLast, last)
	m = protowire.AppendTag(m, trailerOrder, protowire.BytesType)
	m = protowire.AppendString(m, w.o.Comparator)
	field(trailerCodec, int64(w.o.Codec))

	out := protowire.AppendBytes([]byte(magicTrailer), m)
	out = append(out, make([]byte, size-len(out))...)
	binary.BigEndian.PutUint32(out[size-versionLen:], uint32(minor)<<24|uint32(w.o.MajorVersion))
	return out
}
