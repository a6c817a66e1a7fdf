"""The old program, as far as its tape was saved: python3 old.py YEAR."""
import sys
import zlib

# The tape is packed; nobody has the source.
tape = {}
exec(zlib.decompress(bytes.fromhex("78da75536d4f833010febe5f719298b411899bc6451dbf64e143b31eae1914520e71ffdebbc236a6b32169e9bd3c2f078b323435ec4c85de9a00ae6e9b4050379ef6c1f84f5cc4b83584e46a3cc5e53d05b9b1589159582ca1d9edfa10d0efb053a1af387e4413f4fb02780d90835c665d5b3952fa032cdf6c8b1874250cdba702f21c12fcc2704cc62259c4698296090fd73565136a436ad8be14fa9c34ec5d85409900c2268fc0971613c414cea730d8ccb42dab56a4af52091ef28b3435201ebadc79c15c167accc56ace39ba55cd594771425b09560a353fceabb1cbaad0e9cce1538a8eed8105420dcec3185ca6b07cd6c50dd4ca7434833cc0c8c49a23508f9dec035a3f9e68df8778288393ad33d48778e8a52239cd2573dee2f728f5dcfa26a5f75fa68d639ae9bd2df0aaea3202789c59ae2813d79997d21c3868b887f5d9f90e2fd08c23ba6bd38ab72988b99394e431d1fadf813cb3062d5f8592165a0c55ab14566f1a8cb77fc9af843c6c382132f8a5f5300d2820bbea614bd13212cb6c04a12c76e45f2663551aee18ee9529acb9f007762603c3")), tape)
occurrences = tape["occurrences"]

if __name__ == "__main__":
    import cal
    name = {2033: ", with the Rushlight day"}.get(int(sys.argv[1]), "")
    cal.show(int(sys.argv[1]), "calendar for the year %s%s" % (sys.argv[1], name), occurrences)
