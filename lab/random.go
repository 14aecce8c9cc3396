package lab

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// random is a source of random numbers of an algorithm that does not change.
type random = rand.Rand

// newRandom returns a source for a purpose. Sources of one seed and different purposes are
// independent.
func newRandom(seed uint64, purpose string) *random {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// zipfRanks draws ranks 0 to n-1 with probabilities proportional to (rank+1)^-theta, by
// rejection-inversion: W. Hörmann, G. Derflinger, Rejection-inversion to generate variates from
// monotone discrete distributions, 1996. It takes constant time for any n and theta > 0.
type zipfRanks struct {
	r           *random
	theta       float64
	n           int64
	first, last float64 // integrals up to 1.5, less 1, and up to n+0.5
	near        float64 // a draw that is nearer than this to its rank is always accepted
}

func newZipfRanks(r *random, n int64, theta float64) *zipfRanks {
	z := &zipfRanks{r: r, theta: theta, n: n}
	z.first = z.integral(1.5) - 1
	z.last = z.integral(float64(n) + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

// weight returns x^-theta.
func (z *zipfRanks) weight(x float64) float64 { return math.Exp(-z.theta * math.Log(x)) }

// integral returns an integral of weight.
func (z *zipfRanks) integral(x float64) float64 {
	log := math.Log(x)
	return log * quotient(math.Expm1, (1-z.theta)*log)
}

// inverse is the inverse of integral.
func (z *zipfRanks) inverse(y float64) float64 {
	t := max(-1, y*(1-z.theta))
	return math.Exp(y * quotient(math.Log1p, t))
}

// quotient returns f(x)/x, for f(x) = x + O(x²) also at 0.
func quotient(f func(float64) float64, x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1
	}
	return f(x) / x
}

func (z *zipfRanks) next() int64 {
	for {
		u := z.last + z.r.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), float64(z.n))
		if k-x <= z.near || u >= z.integral(k+0.5)-z.weight(k) {
			return int64(k) - 1
		}
	}
}
