"""FlashAttention-3's interface, by whichever name its package has here; None where none loads."""


def module():
    try:
        import fa3_fwd_interface as fa3
    except Exception:  # absent, or built for another PyTorch
        try:
            import flash_attn_interface as fa3
        except Exception:
            return None
    return fa3
