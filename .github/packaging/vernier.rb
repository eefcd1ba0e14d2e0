# Homebrew formula. tests/package/release.sh fills in owner, version and checksum.
class Vernier < Formula
  desc "Numerical parity of transformer inference engines"
  homepage "https://github.com/OWNER/vernier"
  url "https://github.com/OWNER/vernier/releases/download/v@VERSION@/vernier-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "hdf5"
  depends_on "jansson"
  depends_on "libseccomp"
  depends_on "libunistring"
  depends_on "libyaml"
  depends_on "libzip"
  depends_on :linux
  depends_on "openblas"
  depends_on "pcre2"
  depends_on "xxhash"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DVERNIER_TESTS=OFF", "-DVERNIER_GPU=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_equal "vernier #{version}", shell_output("#{bin}/vernier version").strip
    system bin/"vernier", "synth", "tiny", "-o", "model"
    system bin/"vernier", "capture", "ref", "model", "--ids", "1,2,3", "-o", "ref.h5"
    system bin/"vernier", "capture", "ref", "model", "--ids-from", "ref.h5", "--precision", "f16", "-o", "f16.h5"
    assert_match "within limits", shell_output("#{bin}/vernier compare ref.h5 f16.h5 --model model")
  end
end
