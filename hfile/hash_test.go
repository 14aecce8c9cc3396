package hfile

import (
	"github.com/oribi-db/oribi/internal/must"
	"testing"
)

// The values of Jenkins are from Bob Jenkins's lookup3.c, the values of Murmur3 from its widely
// used test vectors.
func TestHashesOfPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		name string
		hash func([]byte, int32) int32
		key  string
		seed int32
		want uint32
	}{
		{"jenkins", jenkins, "", 0, 0xdeadbeef},
		{"jenkins", jenkins, "", -0x21524111, 0xbd5b7dde},
		{"jenkins", jenkins, "Four score and seven years ago", 0, 0x17770551},
		{"jenkins", jenkins, "Four score and seven years ago", 1, 0xcd628161},
		{"murmur3", murmur3, "", 0, 0},
		{"murmur3", murmur3, "", 1, 0x514e28b7},
		{"murmur3", murmur3, "", -1, 0x81f16f39},
		{"murmur3", murmur3, "\xff\xff\xff\xff", 0, 0x76293b50},
		{"murmur3", murmur3, "\x21\x43\x65\x87", 0, 0xf55b516b},
		{"murmur3", murmur3, "\x21\x43\x65\x87", 0x5082edee, 0x2362f9de},
		{"murmur3", murmur3, "\x21\x43\x65", 0, 0x7e4a8634},
		{"murmur3", murmur3, "\x21\x43", 0, 0xa0f7b07a},
		{"murmur3", murmur3, "\x21", 0, 0x72661cf4},
	} {
		must.Equal(t, uint32(c.hash([]byte(c.key), c.seed)), c.want, c.name, c.key, c.seed)
	}
}
