package cityhash

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func count(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func TestHash64Examples(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint64
	}{
		{"", 0xc47b6e9e3a970ed3},
		{"a", 0x235e57f972565b24},
		{"ab", 0x75ed5f9180b36958},
		{"abc", 0x224ca0a599a6c2bf},
		{"abcd", 0x5879a172f0097253},
		{"abcdefgh", 0x79a5b627c36d88cc},
		{"abcdefghi", 0x6d7cbfc79f788a41},
		{"0123456789abcdef", 0x4f2c4bbf27ba62da},
		{"0123456789abcdefg", 0x15217d1c650a8aa7},
		{strings.Repeat("x", 32), 0x4b128c7caae76937},
		{strings.Repeat("x", 33), 0xc749126f1e89f9e8},
		{strings.Repeat("x", 64), 0x4de99fdeedc704f1},
		{strings.Repeat("x", 65), 0x12bf754afbaac7f2},
		{count(128), 0xebff27ed0f72beff},
		{count(129), 0xc22a640386304d24},
		{"\x80", 0x68118717d07f96df},
		{"\xff\xfe\xfd", 0x48d604ac072a16de},
		{"alpha", 0x507357ca3f0df05e},
		{"beta", 0x436a1bac99da38c5},
		{"gamma", 0x8fc4a6de230f79eb},
	} {
		must.Equal(t, Hash64([]byte(c.in)), c.want, "Hash64", c.in)
	}
}

// Every byte takes part, at every length up to the loop's third turn: a wrong offset would leave
// one out.
func TestHash64DependsOnEveryByte(t *testing.T) {
	for n := 1; n <= 200; n++ {
		b := []byte(count(n))
		h := Hash64(b)
		for i := range b {
			b[i] ^= 0x10
			if Hash64(b) == h {
				t.Errorf("length %d: byte %d takes no part", n, i)
			}
			b[i] ^= 0x10
		}
	}
}

func TestHash64ReadsOnlyItsInput(t *testing.T) {
	for n := range 200 {
		b := []byte(count(n + 8))
		h := Hash64(b[:n:n])
		for i := n; i < len(b); i++ {
			b[i] = ^b[i]
		}
		must.Equal(t, Hash64(b[:n]), h, "length", n, "bytes after the input take part")
	}
}

func BenchmarkHash64(b *testing.B) {
	for _, n := range []int{8, 16, 32, 64, 256, 4096} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			in := []byte(count(n))
			b.SetBytes(int64(n))
			var sum uint64
			for b.Loop() {
				sum += Hash64(in)
			}
			if sum == 0 {
				b.Fatal("sum is 0")
			}
		})
	}
}
